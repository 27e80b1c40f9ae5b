"""The one place where an error becomes an answer: RFC 9457 problem details with a stable code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import marshmallow as ma
from flask import Response, g, request
from flask_smorest import Api, Blueprint
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import HTTPException

from casino_brag.errors import MEANINGS, Code, ServiceError
from casino_brag.sealing import SealBroken
from casino_brag.watch.events import record_failure
from casino_brag.web.api import strict_json
from casino_brag.web.requests import body
from casino_brag.web.service import service

MEDIA_TYPE: Final = "application/problem+json"

_BY_STATUS: Final[Mapping[int, tuple[Code, str]]] = {
    400: (Code.MALFORMED_REQUEST, "The request could not be read."),
    404: (Code.NOT_FOUND, "See /docs for the addresses there are."),
    405: (Code.METHOD_NOT_ALLOWED, "See the Allow header for the methods this address takes."),
    413: (Code.BODY_TOO_LARGE, "A body has at most 64 KiB."),
    415: (Code.UNSUPPORTED_MEDIA_TYPE, "Send Content-Type: application/json."),
    422: (Code.INVALID, "See errors for what is wrong with each field."),
}


class ProblemSchema(ma.Schema):
    """An error."""

    type = ma.fields.String(required=True, metadata={"format": "uri-reference"})
    title = ma.fields.String(required=True)
    status = ma.fields.Integer(required=True)
    detail = ma.fields.String(required=True, metadata={"description": "What to do about it."})
    code = ma.fields.Enum(Code, by_value=True, required=True)
    retryable = ma.fields.Boolean(
        required=True, metadata={"description": "Whether the same request can succeed later, unchanged."}
    )
    errors = ma.fields.Dict(
        keys=ma.fields.String(), values=ma.fields.Raw(), metadata={"description": "What is wrong, by field."}
    )


def problem_text(error: ServiceError) -> str:
    """The body of the answer for an error."""
    meaning = error.meaning
    details: dict[str, Any] = {
        "type": f"/docs/problems#{error.code.value}",
        "title": meaning.title,
        "status": meaning.status,
        "detail": error.detail,
        "code": error.code.value,
        "retryable": meaning.retryable,
    }
    if error.errors:
        details["errors"] = error.errors
    return json.dumps(details)


def problem(error: ServiceError) -> Response:
    """The answer for an error."""
    meaning = error.meaning
    g.problem = error.code.value
    response = Response(problem_text(error), status=meaning.status, content_type=MEDIA_TYPE)
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    if meaning.status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


class ProblemApi(Api):  # type: ignore[misc]
    """The API, whose errors are all problems: ours, the framework's and the unforeseen."""

    ERROR_SCHEMA = ProblemSchema
    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_error_handlers(self) -> None:
        assert self._app is not None
        self._app.register_error_handler(ServiceError, problem)
        self._app.register_error_handler(HTTPException, _http_exception)
        self._app.register_error_handler(Exception, _unforeseen)


def _http_exception(error: HTTPException) -> Response:
    if error.code is None or error.code not in _BY_STATUS:
        return _unforeseen(error)
    code, detail = _BY_STATUS[error.code]
    response = problem(ServiceError(code, detail, errors=_field_errors(error)))
    for name, value in error.get_headers(request.environ):
        if name.lower() == "allow":
            response.headers[name] = value
    return response


def _field_errors(error: HTTPException) -> Mapping[str, Any] | None:
    # webargs gives its messages by location; a caller knows only fields.
    messages = getattr(error, "data", {}).get("messages", {})
    flat: dict[str, Any] = {}
    for fields in messages.values():
        flat.update(fields if isinstance(fields, dict) else {"_request": fields})
    return flat or None


def _unforeseen(error: Exception) -> Response:
    record_failure(service().database.connection, "web", error)
    detail = "The request was not carried out, or its answer was lost. Send it again."
    if isinstance(error, SealBroken):
        detail = "A stored record cannot be opened. The operator has to be told."
    return problem(ServiceError(Code.INTERNAL_ERROR, detail))


class StrictParser(FlaskParser):
    """Reads bodies with `strict_json`, whatever their Content-Type says; unknown names are refused."""

    DEFAULT_UNKNOWN_BY_LOCATION = {  # noqa: RUF012 - as the base class has it
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "json": ma.RAISE,
        "query": ma.RAISE,
    }

    def load_json(self, req: Any, schema: ma.Schema) -> Any:
        """The body, which must say that it is JSON."""
        content = body()
        if not req.is_json:
            raise ServiceError(
                Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as JSON: Content-Type: application/json."
            )
        return strict_json.loads(content)


class StrictBlueprint(Blueprint):  # type: ignore[misc]
    """A blueprint whose arguments are read by `StrictParser`."""

    ARGUMENTS_PARSER = StrictParser()

    def problems(self, *codes: Code) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Documents the problems an operation can answer, a response for each status."""
        listed: dict[int, list[Code]] = {}
        for code in (Code.RATE_LIMITED, *codes, Code.INTERNAL_ERROR):
            listed.setdefault(MEANINGS[code].status, []).append(code)
        content = {MEDIA_TYPE: {"schema": ProblemSchema}}
        responses = {
            status: {"description": ", ".join(f"`{code.value}`" for code in of), "content": content}
            for status, of in listed.items()
        }
        documented: Callable[[Callable[..., Any]], Callable[..., Any]] = self.doc(responses=responses)
        return documented
