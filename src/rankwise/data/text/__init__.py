"""svmlight and LETOR text: in, out, and query ids as text."""
