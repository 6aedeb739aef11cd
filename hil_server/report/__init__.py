"""Pages of runs: report, programme, rehearsal, comparison, with their scene and pictures."""
