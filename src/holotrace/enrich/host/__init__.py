"""Host activity: operators, modules, annotations, call stacks, memory."""
