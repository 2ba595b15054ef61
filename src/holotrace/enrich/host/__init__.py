"""Examines host activity: operators, modules, annotations, call stacks and source lines."""
