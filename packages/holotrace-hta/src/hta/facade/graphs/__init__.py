"""Critical paths and call stacks as HTA's objects."""
