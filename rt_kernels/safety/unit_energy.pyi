# Generated from the built module by tools/generate_stubs.py

