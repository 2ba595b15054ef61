"""The Dash application: navigation and selectors around the page that the address names."""
