"""The address of `CascadeModel` in the example of `register_click_model` in clickgym 9.0."""

from .click_models.cascade import CascadeModel as CascadeModel
