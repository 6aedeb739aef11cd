"""The verbs of `hil-server`, one module each; nothing else lists them.

A verb is named as its module (`hand_controller` is `hand-controller`; `import_` is `import`, which Python keeps for itself) and has

    GROUP                    its heading in the help, out of `hil_server.terminal.help.GROUPS`
    ORDER                    its place in the help
    SUMMARY                  what it does, in one line
    EXAMPLES                 command lines with what each does, for its help
    add_arguments(parser)    its arguments
    run(args)                parses, calls, prints; returns the exit code, or a summary (a dict) with its `exit_code`

What it computes is in another room and is imported in `run`: the help imports every verb and must stay fast.
"""
