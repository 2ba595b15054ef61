"""One module per question, each returning frames with HTA's columns."""
