"""The provider of a window: `window.Window` decides what may happen when, and the other modules do it."""
