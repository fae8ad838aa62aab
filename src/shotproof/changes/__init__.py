"""Changes to one thing in an item, such as blur, noise or another background: what interventions are made of."""
