"""What the host did: operators, modules, annotations, call stacks, memory."""
