"""How gunicorn runs the service: threads that wait for the database, workers by cores, a drain before the end."""

from __future__ import annotations

import gc
import os
from typing import Any

from casino_brag.config import read_server_settings
from casino_brag.web.parents import die_with_parent

_settings = read_server_settings()

bind = _settings.bind
workers = _settings.workers
worker_class = "casino_brag.web.draining.DrainingWorker"
threads = _settings.threads
timeout = 30
graceful_timeout = 25
keepalive = 5
limit_request_line = 4094
limit_request_fields = 64
limit_request_field_size = 4096
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108 - heartbeats need no disk
control_socket_disable = True
# No header of a caller says where it comes from or which part of the path is ours.
forwarded_allow_ips = ""
forwarder_headers = ""


def post_worker_init(worker: Any) -> None:
    """Ends a worker as it should end: drained, and not without its master.

    Ctrl-C, which a terminal sends to every process, is left to the master, who lets running requests finish.  A
    worker whose master was killed gets a SIGTERM from the kernel, or it would keep the port from the next one.
    """
    die_with_parent(worker.ppid)


def worker_exit(server: object, worker: object) -> None:
    """Keeps the interpreter from searching for garbage as it ends: that takes more work than the rest of a stop."""
    gc.freeze()
