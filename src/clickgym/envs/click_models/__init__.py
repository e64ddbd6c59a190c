"""Click models, which say how users click on a list: the base class `ClickModel` in `click_model`,
and one file for each click model.
"""
