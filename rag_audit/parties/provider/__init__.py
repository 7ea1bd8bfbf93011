"""The provider of a window: `window.Window` says what may happen when, the other modules how it is done."""
