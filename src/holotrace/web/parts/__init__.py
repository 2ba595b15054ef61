"""The building blocks of pages: the class `Page`, its components, and slow parts that appear when they are ready."""
