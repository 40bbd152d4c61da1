"""Moto's server, without what takes more than half of its processor time and changes none of its answers."""

import functools
import logging
import sys
import types

# CloudFormation imports every service that it can make resources of. That of REST APIs asks for a validator of their descriptions, which
# comes with ten more packages, and no stack here has one.
for _name in ("openapi_spec_validator", "openapi_spec_validator.validation", "openapi_spec_validator.validation.exceptions"):
    _stub = types.ModuleType(_name)
    _stub.validate = _stub.OpenAPIValidationError = _stub.OpenAPISpecValidatorError = None
    sys.modules.setdefault(_name, _stub)

import moto.backends  # noqa: E402
import moto.core.errors
import moto.core.responses
import moto.core.serialize
import moto.core.utils
import moto.ec2.models.core
import moto.ec2.models.tags
import moto.kms.models
import moto.server
import moto.sqs.models
import xmltodict

_import_backend = moto.backends._import_backend


def _import_with_ours(module_name, backends_name):
    backend = _import_backend(module_name, backends_name)
    if module_name == "cloudformation":
        import cloudformation  # noqa: F401
    return backend


moto.backends._import_backend = _import_with_ours

# Moto lists its modules and the methods of a service again for each request.
_modules = list(moto.backends.list_of_moto_modules())
moto.backends.list_of_moto_modules = lambda: _modules
moto.core.responses.method_names_from_class = functools.lru_cache(None)(moto.core.responses.method_names_from_class)

# The first volume of an account makes a key for its encryption: an RSA key, although the key is symmetric.
moto.kms.models.generate_private_key = functools.lru_cache(None)(moto.kms.models.generate_private_key)

# Each name of an element of an answer is validated, character by character, each time it is written.
xmltodict._validate_name = functools.lru_cache(None)(xmltodict._validate_name)


# The errors of a service are listed again for each answer that is one.
moto.core.errors.ErrorLookupFactory._create_error_lut = staticmethod(
    functools.lru_cache(None)(moto.core.errors.ErrorLookupFactory._create_error_lut)
)


class _Picker(moto.core.serialize.XFormedAttributePicker):
    """Finds the value of a member of an answer in moto's objects, as its base class does.

    Under which names, and which transformation the member's path asks for, follows from the member and the
    class of the object. They are worked out once for each.
    """

    _names = {}
    _transforms = {}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._transforms = _Picker._transforms.setdefault(tuple(self.response_transformers), {})

    def __call__(self, context):
        obj, shape = context.obj, context.shape
        place = (context.key, shape, getattr(shape, "parent", None), obj.__class__)
        names = self._names.get(place)
        if names is None:
            names = self._names[place] = tuple(dict.fromkeys(self.get_possible_keys(context)))
        value = None
        for name in names:
            found = moto.core.utils.get_value(obj, name)
            if found is not moto.core.utils.MISSING:
                value = found
                break
        path = f"{context.key_path}.{context.key}"
        if path not in self._transforms:
            self._transforms[path] = next((p for p in self.response_transformers if path.endswith(p)), None)
        transform = self._transforms[path]
        return value if transform is None else self.response_transformers[transform](value)


moto.core.responses.XFormedAttributePicker = _Picker


def _get_tags(resource):
    """The tags of a resource of EC2, without a look at those of all others."""
    if not resource.id:
        return []
    own = moto.ec2.models.tags.TagBackend()
    all_tags = resource.ec2_backend.tags
    if resource.id in all_tags:
        own.tags[resource.id] = all_tags[resource.id]
    return own.describe_tags()


moto.ec2.models.core.TaggedEC2Resource.get_tags = _get_tags


def _is_retained(backend, queue_name, message):
    """Whether a message is younger than its queue retains any. Moto would count all messages of the queue for it."""
    retain_until = backend.get_queue(queue_name).message_retention_period + message.sent_timestamp / 1000
    return retain_until > moto.core.utils.unix_time()


moto.sqs.models.SQSBackend.is_message_valid_based_on_retention_period = _is_retained

# No test reads the log of requests.
logging.getLogger("werkzeug").setLevel(logging.ERROR)

moto.server.main()
