"""The Dash application: navigation and selectors around the requested page."""
