"""Studies, the scorecard, shipped results and makers of pages: code that uses the package, and that
no other folder imports.
"""
