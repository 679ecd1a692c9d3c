"""A strict collector: decodes OTLP with the official definitions, refuses what it
does not know, and writes every span and data point as a line of JSON."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


def unknown(message):
    if len(UnknownFieldSet(message)):
        return True
    for _, value in message.ListFields():
        inner = value if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)) else [value]
        if any(hasattr(one, "ListFields") and unknown(one) for one in inner):
            return True
    return False


def attributes(found):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found}


def spans(request):
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8, "ids"
                assert len(span.parent_span_id) in (0, 8), "parent"
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, "times"
                for event in span.events:
                    assert span.start_time_unix_nano <= event.time_unix_nano, "event before its span"
                yield {
                    "kind": {2: "server", 3: "client"}[span.kind],
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "state": span.trace_state,
                    "status": span.status.code,
                    "attributes": attributes(span.attributes),
                    "events": [{"name": e.name, **attributes(e.attributes)} for e in span.events],
                    "links": [link.trace_id.hex() for link in span.links],
                    "resource": attributes(resource.resource.attributes),
                    "scope": scope.scope.name,
                }


def points(request):
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert metric.unit == "s" and metric.WhichOneof("data") == "histogram", metric.name
                assert metric.histogram.aggregation_temporality == 2, "cumulative"
                for point in metric.histogram.data_points:
                    assert sum(point.bucket_counts) == point.count, "counts"
                    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, "bounds"
                    yield {"metric": metric.name, "count": point.count, "attributes": attributes(point.attributes)}


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            assert self.headers["content-type"] == "application/x-protobuf", "type"
            request = KINDS[self.path].FromString(body)
            assert not unknown(request), "unknown fields"
            MessageToDict(request)
            found = list(spans(request) if self.path == "/v1/traces" else points(request))
            status = 200
        except Exception as error:  # noqa: BLE001
            found, status = [{"refused": repr(error), "path": self.path}], 400
        with open(sys.argv[1], "a") as file:
            file.writelines(json.dumps(one) + "\n" for one in found)
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
