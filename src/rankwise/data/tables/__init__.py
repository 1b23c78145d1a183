"""Tables with named columns: Parquet, Arrow, Feather, CSV and data frames, in and out."""
