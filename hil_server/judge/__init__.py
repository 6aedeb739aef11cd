"""What a run was, out of its log: figures, loads, life, verdicts, margins, contacts, energies, interventions."""
