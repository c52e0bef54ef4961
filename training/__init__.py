"""Making notewell's own embedding model: ingredients, text, training, measuring, export."""
