"""What all pages for people are made of: HTML that needs nothing but a browser, and figures inside it."""
