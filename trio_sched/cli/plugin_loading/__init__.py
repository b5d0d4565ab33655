"""Which plugins there are: installed ones, files, and what flags allow."""
