"""The HTML format of a report (`page.render`), and the figures that the other formats share with it."""
