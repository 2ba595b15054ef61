"""What kind of work a kernel is, and how well it uses its device."""
