"""The views of the console, one module each; nothing else lists them.

    ORDER, NAME        its place among the links at the head of every page, and its word there
    PATH               its address
    PICTURES           whether the page gets the frames of the pictures (True) or values alone
    build(pane, folder, log, chosen)    builds the page; folder: of the logs that are offered; log: the one its address names, "" for none;
                                        chosen: the one that the console was started with, "" for none

A view is made of the drawn parts of `hil_server.console.view` and of NiceGUI's own elements.
"""
