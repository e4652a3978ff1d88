"""A thread that Python has written can be read in JavaScript, and the other way round."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from annals import Annals
from annals.langgraph import AnnalsSaver

from .javascript import run_javascript
from .service import Service, new_name

PROGRAM = """
import { Annals } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint'

const saver = new AnnalsSaver(new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY }))
const config = { configurable: { thread_id: process.env.THREAD, checkpoint_ns: '' } }
const found = await saver.getTuple(config)
console.log(JSON.stringify(found))
const { channel_values, channel_versions } = found.checkpoint
const next = saver.getNextVersion(channel_versions.answer)
const checkpoint = {
  ...emptyCheckpoint(),
  id: uuid6(9),
  channel_values: { ...channel_values, answer: 'from JavaScript' },
  channel_versions: { ...channel_versions, answer: next },
}
await saver.put(found.config, checkpoint, { source: 'loop', step: 2, parents: {} }, { answer: next })
"""


def test_a_thread_goes_from_python_to_javascript_and_back(service: Service) -> None:
    thread_id = new_name("both")
    with Annals(url=service.url, token=service.token) as annals:
        saver = AnnalsSaver(annals)
        versions: dict[str, Any] = {"question": saver.get_next_version(None, None), "answer": 2.0}
        values = {"question": {"text": "where \0?", "tries": [1, 0.5, None]}, "answer": "from Python"}
        config = saver.put(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}},
            {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values, "channel_versions": versions},
            {"source": "loop", "step": 1, "parents": {}},
            versions,
        )
        saver.put_writes(config, [("answer", "pending")], "task")
        read = run_javascript(PROGRAM, ANNALS_URL=service.url, ANNALS_API_KEY=service.token, THREAD=thread_id)
        assert read["checkpoint"]["channel_values"] == values
        assert read["checkpoint"]["channel_versions"] == versions
        assert read["metadata"]["step"] == 1
        assert read["pendingWrites"] == [["task", "answer", "pending"]]
        back = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    assert back
    assert back.checkpoint["channel_values"] == {**values, "answer": "from JavaScript"}
    assert back.parent_config == config
