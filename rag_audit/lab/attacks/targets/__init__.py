"""Services under attack: the engine in process, a window, an endpoint."""
