"""How tasks share a model: laws, effective fractions and seeds on the tables of docs/studies/splitting."""
