"""Help for what the policy cannot do yet: hints and demonstrations."""
