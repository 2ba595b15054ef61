"""What all questions share: how they are described, and how their results are summed up, printed and displayed."""
