"""An attack on ucbf, in sections: each gives its cases."""
