"""Recipes with guidance on hard tasks: hints, demonstrations, teachers and rubrics."""
