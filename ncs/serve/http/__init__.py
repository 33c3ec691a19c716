"""The HTTP server: `ncs serve`; needs the `server` extra."""
