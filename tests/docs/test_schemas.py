"""The committed JSON Schemas are the models'."""

from types import ModuleType


def test_committed_schemas_are_the_models(schema_generator: ModuleType) -> None:
    committed = {p.name: p.read_text() for p in schema_generator.HERE.glob("*.json")}
    result = schema_generator.schemas()
    assert sorted(committed) == sorted(result)
    stale = [name for name, text in result.items() if committed[name] != text]
    assert not stale, "run: python docs/schemas/generate.py"


def test_schemas_refuse_unknown_fields(schema_generator: ModuleType) -> None:
    for name, model in schema_generator.MODELS.items():
        assert model.model_json_schema()["additionalProperties"] is False, name
