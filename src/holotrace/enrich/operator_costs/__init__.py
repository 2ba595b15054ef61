"""What one call of an operator costs: floating-point operations, bytes moved, and precision, from its recorded inputs."""
