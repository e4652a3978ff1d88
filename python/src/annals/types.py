"""The types of the API's parameters and answers. An answer is a dict, as the API sent it.

Generated from openapi.json by `npm run openapi`. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from typing_extensions import NotRequired, TypedDict

JsonObject: TypeAlias = dict[str, Any]
"""Any JSON object. A number is an int, a float, or a Decimal if a float would lose digits."""

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    has_more: bool
    """Whether another page follows."""
    next_cursor: str
    """The cursor of the next page; empty if there is none."""


class AddedInput(TypedDict):
    state: Literal["pending", "withdrawn", "expired", "applied"]
    """applied: an append has already stored it, as the entry `seq`."""
    id: str
    """The input."""
    input: NotRequired[InboxInput]
    seq: NotRequired[int]
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""


class AppendToSessionsQuery(TypedDict):
    with_items: NotRequired[bool | None]
    """false: `items` is empty, and `seqs` has the entries' positions. For callers that do not need their own data back."""


class AppendedEntries(TypedDict):
    items: list[TimelineItem]


class AppendedToSessions(TypedDict):
    appends: list[AppendedToSessionsAppends]
    """In the order sent."""


class AppendedToSessionsAppends(TypedDict):
    session_id: str
    """The session."""
    items: list[TimelineItem]
    """Its entries, in the order sent."""
    seqs: NotRequired[list[int]]
    """Only with `with_items=false`: the seqs of its entries, in the order sent."""


class AskedCall(TypedDict):
    name: str
    """The tool."""
    arguments: Any
    """Its arguments: any JSON."""


class Blob(TypedDict):
    sha256: str
    """The SHA-256 of the bytes, as 64 hexadecimal digits in lower case."""
    bytes: int
    """How many bytes it has."""


class ClaimedSession(TypedDict):
    session_id: str
    """The session."""
    fence: int
    """The number of a lease. It only increases: the next lease has a higher one."""
    owner: str
    """Names the runner: one name for each process, such as a host and a process id."""
    expires_at: str
    """When it ends unless it is renewed, by the database's clock."""
    inputs: list[InboxInput]
    """Its due input, in order."""
    has_more: bool
    """Whether more is due than fits here: read the inbox."""


class Context(TypedDict):
    items: list[JsonObject]
    ids: list[str]
    tokens: int
    """Tokens of the context (o200k_base); an estimate where tool results are cleared, or a message is partly left out."""
    from_seq: int
    """The seq from which the log is included without a gap; 0 in a session without messages."""
    cleared_through_seq: int
    """Tool results up to this seq are cleared, except those of excluded tools; 0: none."""
    compaction_seq: int
    """The compaction that the context begins with; 0: none."""
    omitted: list[ContextOmitted]
    """Parts of the messages that were left out."""
    added: list[ContextAdded]
    """What was added to the list, or moved within it."""
    names: JsonObject
    """Tools whose names the provider does not accept: a map from the names in the list to their own names. Declare the tools under the former, and call them by the latter."""
    pin: str
    """What to send as `pin` with the next call."""


class ContextAdded(TypedDict):
    id: str
    """The message that it belongs to."""
    reason: Literal["no_result", "late_result", "turn"]
    """`no_result`: a call without a result got a placeholder; `late_result`: a result arrived after its call had been sent without it, and is a user's text; `turn`: a user's turn, where the provider requires one."""
    call_id: NotRequired[str]


class ContextOmitted(TypedDict):
    id: str
    """The message."""
    reason: Literal["not_in_format", "empty", "no_call", "duplicate_result", "duplicate_item", "no_result", "reasoning", "cache_marks", "compacted"]
    """`not_in_format`: the format cannot say it; `empty`: the message says nothing; `no_call`: a result without its call; `duplicate_result`: another result of the call counts; `duplicate_item`: the list has the item already; `no_result`: a call without a result, where the format has no way to say so; `reasoning`: thoughts that are not wanted, or that nothing follows; `cache_marks`: marks beyond four; `compacted`: a compaction by the provider stands for it."""
    what: NotRequired[str]
    """The kind of part."""
    call_id: NotRequired[str]


class ContextQuery(TypedDict):
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"] | None]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    max_tokens: NotRequired[int | None]
    """How many tokens the context may have before it is cut."""
    target_tokens: NotRequired[int | None]
    """How many tokens it is cut down to. By default 60 % of `max_tokens`; at most `max_tokens`."""
    keep_tool_results: NotRequired[int | None]
    """This many of the newest tool results stay whole; a short text with seq and size replaces each older one. None: all stay."""
    exclude_tools: NotRequired[str | None]
    """Names of tools, separated by commas, whose results always stay whole."""
    clear_tool_inputs: NotRequired[bool | None]
    """true: also empties the arguments of the calls whose results are cleared."""
    compaction: NotRequired[Literal["newest", "none"] | None]
    """`none`: ignores the session's compactions."""
    reasoning: NotRequired[Literal["keep", "drop", "last_turn"] | None]
    """Whether a model's thoughts (`reasoning_content` and the like, thinking, reasoning items) are included: all, none, or those since the user last said something. Providers differ in what they accept."""
    pin: NotRequired[str | None]
    """The `pin` of the previous answer: keeps its cut, so the same prefix comes back byte for byte until `max_tokens` is exceeded again."""


class CopiedSession(TypedDict):
    old_session_id: str
    """The session that was copied."""
    new_session_id: str
    """The copy."""


class CreatedKey(TypedDict):
    token: str
    """The secret. It is shown only once."""
    id: str
    """The token, for revoking it."""
    project_id: str
    """Its project."""
    name: str
    scopes: list[Literal["read", "write", "append", "ingest", "admin"]]
    """What the token allows: `read` to read; `write` everything else but keys; `append` only appends and new sessions; `ingest` only to send traces and logs of OpenTelemetry; `admin` only the keys of the project."""
    masked: bool
    """Whether it reads masks in place of e-mail addresses, phone numbers, cards, accounts and secrets, and no attachments."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    revoked_at: str | None


class CreatedWebhook(TypedDict):
    id: str
    """The webhook."""
    url: str
    """The URL that receives deliveries: http or https, without a user name or a fragment."""
    events: list[str]
    """`message`: every message. `event`: every event. `event.<type>`: events of that type. `request.opened`: requests of runners. `input.added`: input that waits for a runner."""
    created_at: str
    """When it was created. Entries stored before are not sent."""
    secret: str
    """Verifies deliveries. It is shown only this once."""


class DownloadAssetQuery(TypedDict):
    sha256: NotRequired[str | None]
    """The SHA-256 of the bytes, as 64 hexadecimal digits in lower case."""
    s3_key: NotRequired[str | None]
    """The same, as clients read it from `asset`."""


class ErasedUser(TypedDict):
    deleted: ErasedUserDeleted
    pending: NotRequired[ErasedUserPending]
    """Bytes whose deletion the store of attachments has not confirmed yet. They are deleted as soon as possible."""


class ErasedUserDeleted(TypedDict):
    sessions: int
    entries: int
    statement_cites: int
    revoked_statements: int
    statements: int
    skills: int
    learning_spaces: int
    blobs: int


class ErasedUserPending(TypedDict):
    """Bytes whose deletion the store of attachments has not confirmed yet. They are deleted as soon as possible."""

    objects: int


class EventsQuery(TypedDict):
    type: NotRequired[str | None]
    """The kind of event, named by the caller."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class ExportSessionQuery(TypedDict):
    format: NotRequired[Literal["atif", "openai", "anthropic", "jsonl"] | None]
    """What to write."""


class Feedback(TypedDict):
    statement_ids: list[str]
    session_id: str
    """The session that used them."""
    helped: bool
    """Whether they helped."""


class Fork(TypedDict):
    up_to_seq: NotRequired[int | None]
    user: NotRequired[str | None]
    configs: NotRequired[Mapping[str, object] | None]
    use_uuid: NotRequired[str | None]


class FoundEntry(TypedDict):
    session_id: str
    """The session whose log has the entry."""
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    kind: Literal["message", "event"]
    type: NotRequired[str]
    """The kind of event, named by the caller."""
    role: NotRequired[str]
    """The role of a message; `tool` if it has only results of tools, whatever its stored role."""
    created_at: str
    """When it was stored."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    snippet: FoundEntrySnippet
    score: NotRequired[float]
    """With `mode=recall`: how well it answers. Comparable within an answer."""
    before: NotRequired[FoundEntryBefore]
    """With `mode=recall`: the entry right before it."""
    after: NotRequired[FoundEntryAfter]
    """With `mode=recall`: the entry right after it."""


class FoundEntryAfter(TypedDict):
    """With `mode=recall`: the entry right after it."""

    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    kind: Literal["message", "event"]
    type: NotRequired[str]
    """The kind of event, named by the caller."""
    role: NotRequired[str]
    """The role of a message; `tool` if it has only results of tools, whatever its stored role."""
    created_at: str
    """When it was stored."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    snippet: FoundEntryAfterSnippet


class FoundEntryAfterSnippet(TypedDict):
    text: str
    """Up to 200 characters of the entry's text, around the match."""
    hits: list[list[int]]
    """Where matches in it begin and end, in UTF-16 code units."""


class FoundEntryBefore(TypedDict):
    """With `mode=recall`: the entry right before it."""

    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    kind: Literal["message", "event"]
    type: NotRequired[str]
    """The kind of event, named by the caller."""
    role: NotRequired[str]
    """The role of a message; `tool` if it has only results of tools, whatever its stored role."""
    created_at: str
    """When it was stored."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    snippet: FoundEntryBeforeSnippet


class FoundEntryBeforeSnippet(TypedDict):
    text: str
    """Up to 200 characters of the entry's text, around the match."""
    hits: list[list[int]]
    """Where matches in it begin and end, in UTF-16 code units."""


class FoundEntrySnippet(TypedDict):
    text: str
    """Up to 200 characters of the entry's text, around the match."""
    hits: list[list[int]]
    """Where matches in it begin and end, in UTF-16 code units."""


class FoundPage(TypedDict):
    """With `group=entry`."""

    items: list[FoundEntry]
    has_more: bool
    """Whether another page follows. If matches are rare, a page may be short or empty although more follow. A question is answered with one page."""
    next_cursor: str
    """The `cursor` of the next page; empty on the last page."""
    terms: NotRequired[list[str]]
    """With `mode=recall`: the words of the question that were searched for."""
    complete: NotRequired[bool]
    """With `mode=recall`: whether all entries that have any of the words were scored. Otherwise, only those with the rarest words were, and of frequent words the newest."""
    vectors: NotRequired[Literal["used", "filling", "unavailable"]]
    """With `mode=recall`, where the operator has set a model: whether vectors were used, too; `filling`: older entries have none yet; `unavailable`: words alone answer."""
    indexed_through: str | None
    indexing: FoundPageIndexing | None
    refilling: NotRequired[FoundPageRefilling]
    """With `mode=recall`, while an older version's index is being rewritten: in the remaining entries, only exact words are found."""


class FoundPageIndexing(TypedDict):
    """Progress of building the index; null when it is done."""

    sessions_done: int
    sessions: int


class FoundPageRefilling(TypedDict):
    """With `mode=recall`, while an older version's index is being rewritten: in the remaining entries, only exact words are found."""

    entries_done: int
    entries: int


class FoundSession(TypedDict):
    session_id: str
    """The session."""
    score: NotRequired[float]
    """With `mode=recall`: how well it answers. Comparable within an answer."""
    title: str | None
    created_at: str
    """When the session was created."""
    entries: list[FoundEntry]
    """With `mode=recall`: up to three entries, the best first."""


class FoundSessions(TypedDict):
    """With `group=session`."""

    items: list[FoundSession]
    """With `mode=words`, a session has those of its entries that are on this page."""
    has_more: bool
    """Whether another page follows. If matches are rare, a page may be short or empty although more follow. A question is answered with one page."""
    next_cursor: str
    """The `cursor` of the next page; empty on the last page."""
    terms: NotRequired[list[str]]
    """With `mode=recall`: the words of the question that were searched for."""
    complete: NotRequired[bool]
    """With `mode=recall`: whether all entries that have any of the words were scored. Otherwise, only those with the rarest words were, and of frequent words the newest."""
    vectors: NotRequired[Literal["used", "filling", "unavailable"]]
    """With `mode=recall`, where the operator has set a model: whether vectors were used, too; `filling`: older entries have none yet; `unavailable`: words alone answer."""
    indexed_through: str | None
    indexing: FoundSessionsIndexing | None
    refilling: NotRequired[FoundSessionsRefilling]
    """With `mode=recall`, while an older version's index is being rewritten: in the remaining entries, only exact words are found."""


class FoundSessionsIndexing(TypedDict):
    """Progress of building the index; null when it is done."""

    sessions_done: int
    sessions: int


class FoundSessionsRefilling(TypedDict):
    """With `mode=recall`, while an older version's index is being rewritten: in the remaining entries, only exact words are found."""

    entries_done: int
    entries: int


class GetProofQuery(TypedDict):
    seq: NotRequired[int | None]
    """Which entry."""


class GetUsageQuery(TypedDict):
    days: NotRequired[int | None]
    """How many days, to today."""


class InboxInput(TypedDict):
    id: str
    """The input, and the entry that it becomes."""
    session_id: str
    """The session."""
    place: int
    """Its place: inputs of a session are in this order."""
    mode: Literal["queue", "steer", "interrupt"]
    """What the runner should do with it: take it after its turn, during it, or stop for it. The service treats all three the same."""
    state: Literal["pending", "withdrawn", "expired"]
    """Its state. Input that was applied is an entry of the log."""
    kind: Literal["event", "message"]
    """The kind of entry that it becomes."""
    type: NotRequired[str]
    """The kind of event, named by the caller."""
    data: NotRequired[JsonObject]
    """The event itself: any JSON object."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    role: NotRequired[str]
    """Of a message."""
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"]]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    blob: NotRequired[JsonObject]
    """One whole message in the provider's own format; of the Responses API, one item."""
    meta: NotRequired[JsonObject]
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""
    reason: NotRequired[str]
    """Why it was withdrawn."""
    expires_at: NotRequired[str]
    """From then on it is no longer pending."""
    created_at: str
    """When it was added."""
    not_before: str
    """When it is due."""


class InboxQuery(TypedDict):
    state: NotRequired[Literal["pending", "due", "withdrawn"] | None]
    """By default `pending`; `due`: of these, those whose `not_before` has passed."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""


class IssuedToken(TypedDict):
    token: str
    """It is sent like an API key, in the header Authorization."""
    expires_at: str
    """When it expires."""


class LatestQuery(TypedDict):
    key: NotRequired[str | None]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    key_prefix: NotRequired[str | None]
    """Only keys that begin with this."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""


class LearningSpace(TypedDict):
    id: str
    """The learning space."""
    user_id: str | None
    meta: JsonObject
    """Any JSON object of the caller, stored with the space; `{}` if never set."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""


class LearningSpacesQuery(TypedDict):
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    filter_by_meta: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded. Only spaces whose `meta` contains it. `{}` filters nothing."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class Lease(TypedDict):
    fence: int
    """The number of a lease. It only increases: the next lease has a higher one."""
    owner: str
    """Names the runner: one name for each process, such as a host and a process id."""
    expires_at: str
    """When it ends unless it is renewed, by the database's clock."""


class ListMembersData(TypedDict):
    items: list[Member]


class ListPersonalTokensData(TypedDict):
    items: list[Token]


class ListedSkill(TypedDict):
    id: str
    """The skill."""
    user_id: str | None
    learning_space_id: str | None
    name: str
    """Its name, from the front matter of SKILL.md."""
    description: str
    """What it does and when to use it, from the same front matter."""
    source: Literal["written", "learnt"]
    """`written` by a person and uploaded, or `learnt` by a learning space."""
    meta: JsonObject
    """Any JSON object of the caller, stored with the skill; `{}` if never set."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""


class Member(TypedDict):
    id: str
    """The member."""
    project_id: str
    """The project."""
    email: str
    """The address; letter case does not matter."""
    role: Literal["admin", "member", "viewer"] | None
    is_from_group: bool
    """Whether the role comes only from the issuer's groups, and ends with them."""
    has_signed_in: bool
    """false: the first person who signs in with this address becomes the member."""
    created_at: str
    """When the member was added."""


class MergedConfigs(TypedDict):
    configs: JsonObject
    """The merged configs."""


class MergedMeta(TypedDict):
    meta: JsonObject
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""


class Message(TypedDict):
    id: str
    """The message."""
    session_id: str
    """The session whose log contains it."""
    parent_id: str | None
    role: Literal["user", "assistant"]
    meta: JsonObject
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""
    parts: list[JsonObject]
    task_id: None
    session_task_process_status: Literal["pending", "disable_tracking"]
    created_at: str
    """When it was stored. It never decreases along `seq`."""
    updated_at: str
    """When its meta last changed."""
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""


class MessagePage(TypedDict):
    items: list[JsonObject]
    ids: list[str]
    metas: list[JsonObject]
    has_more: bool
    next_cursor: str
    edit_at_message_id: str
    """`pin_editing_strategies_at_message`, if it was sent; otherwise the id of the page's last message, empty on a page without messages."""
    this_time_tokens: int
    """Tokens of the page as returned (o200k_base); an estimate where it is edited."""
    public_urls: NotRequired[JsonObject]
    """By the SHA-256 of the blobs."""
    omitted: NotRequired[list[MessagePageOmitted]]
    """Parts of the messages that were left out."""
    added: NotRequired[list[MessagePageAdded]]
    """What was added to the list, or moved within it."""
    names: NotRequired[JsonObject]
    """Tools whose names the provider does not accept: a map from the names in the list to their own names. Declare the tools under the former, and call them by the latter."""
    events: NotRequired[list[SessionEvent]]


class MessagePageAdded(TypedDict):
    id: str
    """The message that it belongs to."""
    reason: Literal["no_result", "late_result", "turn"]
    """`no_result`: a call without a result got a placeholder; `late_result`: a result arrived after its call had been sent without it, and is a user's text; `turn`: a user's turn, where the provider requires one."""
    call_id: NotRequired[str]


class MessagePageOmitted(TypedDict):
    id: str
    """The message."""
    reason: Literal["not_in_format", "empty", "no_call", "duplicate_result", "duplicate_item", "no_result", "reasoning", "cache_marks", "compacted"]
    """`not_in_format`: the format cannot say it; `empty`: the message says nothing; `no_call`: a result without its call; `duplicate_result`: another result of the call counts; `duplicate_item`: the list has the item already; `no_result`: a call without a result, where the format has no way to say so; `reasoning`: thoughts that are not wanted, or that nothing follows; `cache_marks`: marks beyond four; `compacted`: a compaction by the provider stands for it."""
    what: NotRequired[str]
    """The kind of part."""
    call_id: NotRequired[str]


class MessagesQuery(TypedDict):
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"] | None]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    limit: NotRequired[int | None]
    """Most messages per page. Absent or 0: the whole session, streamed."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: pages go from the newest messages to the oldest. Each page itself reads oldest to newest."""
    edit_strategies: NotRequired[list[Mapping[str, object]] | None]
    """A JSON array, URL-encoded, of `{ 'type', 'params' }`, which are applied in order to the messages of the page: `remove_tool_result` and `remove_tool_call_params` clear all but the newest results or arguments of calls, `token_limit` leaves out the oldest messages, `middle_out` those in the middle."""
    pin_editing_strategies_at_message: NotRequired[str | None]
    """The last message that `edit_strategies` are applied to; later ones are shown as they are."""
    fit: NotRequired[bool | None]
    """true: the messages of the page as a list that can be sent to the provider, as `GET /session/{session_id}/context` has them. Only the page is considered, at most 10,000 messages and 32 MiB."""
    reasoning: NotRequired[Literal["keep", "drop", "last_turn"] | None]
    """Whether a model's thoughts (`reasoning_content` and the like, thinking, reasoning items) are included: all, none, or those since the user last said something. Providers differ in what they accept."""
    with_events: NotRequired[bool | None]
    """true: also the events between the messages of the page."""
    with_asset_public_url: NotRequired[bool | None]
    """true: also a URL for each blob of the page, which needs no API key and is valid for 5 minutes."""


class NewCompaction(TypedDict):
    to_seq: int
    """The last entry that the summary replaces."""
    summary: SummaryMessage | list[SummaryMessage]
    """The replacement in contexts: one or more messages, each in its own format."""
    from_seq: NotRequired[int]
    """The first entry that it replaces; by default the session's first."""
    except_: NotRequired[list[str]]
    """Messages that contexts show whole, after the summary. A call and its result stay together."""
    by: NotRequired[str]
    """Who or what wrote the summary."""
    model: NotRequired[str]
    """The model that wrote it."""


class NewEvent(TypedDict):
    type: str
    """The kind of event, named by the caller."""
    data: Mapping[str, object]
    """The event itself: any JSON object."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""


class NewEventEntry(TypedDict):
    kind: Literal["event"]
    type: str
    """The kind of event, named by the caller."""
    data: Mapping[str, object]
    """The event itself: any JSON object."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    id: NotRequired[str]
    """An id for the entry. If the session already has an entry with this id, that one is returned and nothing is stored."""


class NewEventInput(TypedDict):
    kind: Literal["event"]
    mode: Literal["queue", "steer", "interrupt"]
    """What the runner should do with it: take it after its turn, during it, or stop for it. The service treats all three the same."""
    type: str
    """The kind of event, named by the caller."""
    data: Mapping[str, object]
    """The event itself: any JSON object."""
    id: NotRequired[str]
    """An id for the input, and for the entry that it becomes. It makes a retry safe."""
    not_before: NotRequired[str]
    """When it becomes due. By default at once."""
    expires_at: NotRequired[str]
    """When it stops being pending. By default never."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""


class NewKey(TypedDict):
    name: str
    scopes: NotRequired[list[Literal["read", "write", "append", "ingest", "admin"]]]
    """What the token allows: `read` to read; `write` everything else but keys; `append` only appends and new sessions; `ingest` only to send traces and logs of OpenTelemetry; `admin` only the keys of the project."""
    masked: NotRequired[bool]
    """Whether it reads masks in place of e-mail addresses, phone numbers, cards, accounts and secrets, and no attachments."""
    expires_at: NotRequired[str | None]


class NewLearningSpace(TypedDict):
    user: NotRequired[str | None]
    meta: NotRequired[Mapping[str, object] | None]


class NewLease(TypedDict):
    owner: str
    """Names the runner: one name for each process, such as a host and a process id."""
    ttl_ms: int
    """How long the lease holds unless it is renewed, in ms."""
    wait_ms: NotRequired[int]
    """How long to wait if the lease is held, in ms."""
    progress: NotRequired[bool]
    """Renewals alone do not keep the lease: it ends `ttl_ms` after the last append under its fence."""
    requires_fence: NotRequired[bool]
    """Until the lease is released or taken again, appends, requests and changes of configs without the header `Annals-Fence` are refused."""
    steal: NotRequired[bool]
    """Takes the lease from its holder. The key needs the scope `admin`."""


class NewMember(TypedDict):
    email: str
    """The address; letter case does not matter."""
    role: Literal["admin", "member", "viewer"]
    """`viewer` reads; `member` also writes, answers requests and approves statements; `admin` also erases, and manages keys and members."""


class NewMessage(TypedDict):
    blob: Mapping[str, object]
    """One whole message in the provider's own format; of the Responses API, one item."""
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"]]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    meta: NotRequired[Mapping[str, object] | None]
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""


class NewMessageEntry(TypedDict):
    kind: Literal["message"]
    blob: Mapping[str, object]
    """One whole message in the provider's own format; of the Responses API, one item."""
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"]]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    meta: NotRequired[Mapping[str, object]]
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    id: NotRequired[str]
    """An id for the entry. If the session already has an entry with this id, that one is returned and nothing is stored."""


class NewMessageInput(TypedDict):
    kind: Literal["message"]
    mode: Literal["queue", "steer", "interrupt"]
    """What the runner should do with it: take it after its turn, during it, or stop for it. The service treats all three the same."""
    blob: Mapping[str, object]
    """One whole message in the provider's own format; of the Responses API, one item."""
    id: NotRequired[str]
    """An id for the input, and for the entry that it becomes. It makes a retry safe."""
    not_before: NotRequired[str]
    """When it becomes due. By default at once."""
    expires_at: NotRequired[str]
    """When it stops being pending. By default never."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"]]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    meta: NotRequired[Mapping[str, object]]
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""


class NewPersonalToken(TypedDict):
    name: str
    expires_in_days: int
    """Days until it expires."""
    scopes: NotRequired[list[Literal["read", "write", "append", "ingest", "admin"]]]
    """By default, everything that its owner's current role allows."""


class NewRequest(TypedDict):
    kind: Literal["approval", "question"]
    """An approval is answered with yes or no, a question with an answer."""
    id: NotRequired[str]
    """An id for the request. It makes a retry safe."""
    call: NotRequired[AskedCall]
    text: NotRequired[str]
    """The question, for a person to read."""
    options: NotRequired[list[str]]
    """Answers to choose from."""
    expires_at: NotRequired[str]
    """When it stops being answerable."""


class NewSession(TypedDict):
    user: NotRequired[str | None]
    configs: NotRequired[Mapping[str, object] | None]
    disable_task_tracking: NotRequired[bool | None]
    expires_in_s: NotRequired[int | None]
    parent: NotRequired[str | None]
    use_uuid: NotRequired[str | None]


class NewSpacePolicy(TypedDict):
    mode: Literal["off", "suggest", "auto"]
    """`suggest`: every statement waits for a person. `auto`: statements of a model become active when sessions of two users support them (in the space of a user, two sessions); procedures only if they also correlate with success in runs of the same task. Statements from rules wait for a person. `off`: nothing is learnt."""
    reward: NotRequired[str]
    """Where a session's configs have the reward, a number from 0 (failure) to 1 (success): names of keys, each after a slash."""
    group: NotRequired[str]
    """Where a session's configs have the task, by which runs are compared: names of keys, each after a slash."""
    max_tokens_per_day: NotRequired[int]
    """Most tokens of a model that the space may use in 24 hours."""


class NewStatement(TypedDict):
    text: str
    """The statement, in a sentence or two."""
    kind: NotRequired[Literal["procedure", "pitfall", "fact", "preference"]]
    """What to do, what to avoid, how things are, or what a person wants."""
    skill: NotRequired[str]
    """The skill that it belongs to."""


class NewToken(TypedDict):
    for_: TokenSessions
    """The sessions that the token reaches: one, all of a user, or all below another."""
    scopes: list[Literal["read", "append", "inbox", "resolve"]]
    ttl_s: int
    """Seconds until it expires."""
    origin: NotRequired[str]
    """The origin of the pages that use it, as browsers send it. They may read the answers, and pages of other origins are refused."""


class NewWebhook(TypedDict):
    url: str
    """The URL that receives deliveries: http or https, without a user name or a fragment."""
    events: list[str]
    """`message`: every message. `event`: every event. `event.<type>`: events of that type. `request.opened`: requests of runners. `input.added`: input that waits for a runner."""
    secret: NotRequired[str]
    """`whsec_` and 24 to 64 bytes in base64; by default the service makes one."""


class OwnKey(TypedDict):
    id: str
    """The token, for revoking it."""
    project_id: str
    """Its project."""
    scopes: list[str]
    """What it allows."""
    masked: NotRequired[bool]
    """It reads masks in place of personal data. Absent: it reads everything."""
    reaches: NotRequired[JsonObject]
    """For a token for some sessions: the sessions it reaches. Absent: the whole project."""
    expires_at: NotRequired[str]
    """When such a token expires."""
    outcomes: NotRequired[JsonObject]
    """The project's own words for how a session ended, where `configs` have one as `status`, `outcome`, `result`, `state`, `verdict` or `exit_status`; in any case. The console and the command line show and count them."""


class Proof(TypedDict):
    session_id: str
    begins: bool
    """Whether the chain begins with the entry."""
    forked_proof: str | None
    before: str
    """The link before; of the first one, what a chain begins with."""
    entry: ProofEntry
    """The entry as it was chained."""
    link: str
    """The link of the entry."""
    head: ProofHead
    anchor: ProofAnchor | None


class ProofAnchor(TypedDict):
    steps: list[ProofAnchorSteps] | None
    leaf: ProofAnchorLeaf
    """The head that was anchored."""
    path: list[ProofAnchorPath]
    """From the leaf to the root of the Merkle tree."""
    statement: ProofAnchorStatement
    """What was signed."""


class ProofAnchorLeaf(TypedDict):
    """The head that was anchored."""

    session_id: str
    seq: int
    head: str
    """The link of that entry."""
    state: Literal["live"]


class ProofAnchorPath(TypedDict):
    side: Literal["left", "right"]
    """On which side of the hash so far it goes."""
    hash: str
    """Of the neighbour."""


class ProofAnchorStatement(TypedDict):
    """What was signed."""

    nth: int
    project: str
    made_at: str
    size: int
    root: str
    """The root of the tree."""
    previous: str
    """Of the statement of the anchor before."""
    public_key: str
    """Ed25519."""
    signature: str


class ProofAnchorSteps(TypedDict):
    seq: int
    id: str
    created_at: str
    kind: Literal["event", "message"]
    """A kind of entry."""
    content_sha256: str
    """Of the content."""


class ProofEntry(TypedDict):
    """The entry as it was chained."""

    seq: int
    id: str
    created_at: str
    kind: Literal["event", "message"]
    """A kind of entry."""
    type: str | None
    role: str | None
    format: str | None
    key: str | None
    occurred_at: str | None
    data: JsonObject
    """An event's data, or a message's blob."""
    meta: JsonObject | None


class ProofHead(TypedDict):
    seq: int
    link: str
    """The link of the last entry."""


class Redaction(TypedDict):
    rules: list[JsonObject] | None


class RequestsQuery(TypedDict):
    state: NotRequired[Literal["open", "resolved", "expired"] | None]
    """By default `open`."""
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    session_id: NotRequired[str | None]
    """Only requests of this session."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class Resolution(TypedDict):
    decision: Literal["approve", "deny", "answer"]
    """`approve` or `deny` an approval, `answer` a question."""
    answer: NotRequired[Any]
    """Any JSON."""
    by: NotRequired[str]
    """Who decided."""
    call_sha256: NotRequired[str]
    """The SHA-256 of `{ 'name', 'arguments' }` in the canonical form of RFC 8785, in hexadecimal."""
    id: NotRequired[str]
    """An id for the answer, and for its event. It makes a retry safe."""


class ResolutionOf(TypedDict):
    request_id: str
    """The request."""
    decision: Literal["approve", "deny", "answer"]
    """`approve` or `deny` an approval, `answer` a question."""
    answer: NotRequired[Any]
    """Any JSON."""
    by: NotRequired[str]
    """Who decided."""
    call_sha256: NotRequired[str]
    """The SHA-256 of `{ 'name', 'arguments' }` in the canonical form of RFC 8785, in hexadecimal."""
    id: NotRequired[str]
    """An id for the answer, and for its event. It makes a retry safe."""


class RetractedEntries(TypedDict):
    retraction: SessionEvent
    items: list[TimelineItem]
    """The entries that it retracted, in order of seq. Empty for a key without the scope `read`."""
    appended: NotRequired[list[TimelineItem]]
    """If entries were given: as they were stored, in order."""


class Retraction(TypedDict):
    ids: NotRequired[list[str]]
    """These entries. Already retracted ones are skipped."""
    after_seq: NotRequired[int]
    """All entries with a greater seq, up to 10,000."""
    last: NotRequired[int]
    """This many of the newest entries that were not retracted. With `type`, or `kind` event, those among the newest 10,000."""
    kind: NotRequired[Literal["message", "event"]]
    """With `last`: only entries of this kind."""
    type: NotRequired[str]
    """With `last`: only events of this type."""
    entries: NotRequired[list[NewEntry]]
    """Appended after the retraction in the same commit, as by `POST …/entries` but without their own ids: this replaces entries, all or nothing."""


class Run(TypedDict):
    """The session's runner, and what is waiting. Absent: it never had a lease, an input or a request. Lists of sessions leave it out."""

    state: Literal["running", "waiting", "queued", "idle"]
    """running, else waiting, else queued, else idle."""
    fence: int
    """The fence of the last lease; 0: there never was one."""
    pending: int
    """Pending inputs, including those that are not due yet."""
    open_requests: int
    """Requests that can be answered."""
    owner: NotRequired[str]
    """Names the runner: one name for each process, such as a host and a process id."""
    expires_at: NotRequired[str]
    """When the lease ends."""
    taken_at: NotRequired[str]
    """When it was taken."""


class RunItem(TypedDict):
    session_id: str
    """The session."""
    since: str
    """Since when, for the order of the list."""
    run: Run


class RunnerRequest(TypedDict):
    id: str
    """The request."""
    session_id: str
    """The session."""
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    state: Literal["open", "resolved", "expired"]
    """Whether it can be answered."""
    kind: Literal["approval", "question"]
    """An approval is answered with yes or no, a question with an answer."""
    call: NotRequired[RunnerRequestCall]
    text: NotRequired[str]
    """The question, for a person to read."""
    options: NotRequired[list[str]]
    """Answers to choose from."""
    call_sha256: NotRequired[str]
    """The SHA-256 of `{ 'name', 'arguments' }` in the canonical form of RFC 8785, in hexadecimal."""
    expires_at: NotRequired[str]
    """When it stops being answerable."""
    decision: NotRequired[Literal["approve", "deny", "answer"]]
    """`approve` or `deny` an approval, `answer` a question."""
    answer: NotRequired[Any]
    """The answer: any JSON."""
    by: NotRequired[str]
    """Who decided."""
    resolved_at: NotRequired[str]
    """When it was answered."""
    resolved_seq: NotRequired[int]
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    created_at: str
    """When it was opened."""


class RunnerRequestCall(TypedDict):
    name: str
    """The tool."""
    arguments: Any
    """Its arguments: any JSON."""


class RunsQuery(TypedDict):
    state: NotRequired[Literal["running", "waiting", "queued"] | None]
    """running: with a valid lease. waiting: with an open request. queued: with due input and no valid lease."""
    filter_by_configs: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded: only sessions whose `configs` contain it."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""


class SearchQuery(TypedDict):
    q: NotRequired[str | None]
    """The words of an entry: `words`, `'words in this order'`, `-without`, `begin*`; up to 32 words. Case does not matter. A word with signs in it, such as `get_user`, is searched as if it stood in quotes."""
    mode: NotRequired[Literal["words", "recall"] | None]
    """`words`: entries that have all that `q` names. `recall`: those that answer a question in plain words best, in any form of its words; not all need to be there."""
    group: NotRequired[Literal["session", "entry"] | None]
    """What the items are: entries, or sessions with their entries. By default sessions with `mode=recall`, and entries otherwise."""
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    filter_by_configs: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded. Only entries of sessions whose `configs` contain it, as in the list of sessions."""
    session_id: NotRequired[str | None]
    """Only entries of this session."""
    kind: NotRequired[Literal["message", "event"] | None]
    """Only entries of this kind."""
    type: NotRequired[str | None]
    """Only events of this type."""
    role: NotRequired[str | None]
    """Only messages with this role."""
    from_: NotRequired[str | None]
    """Only entries that happened at this time or later: by `occurred_at` where it is set and not later than `created_at`."""
    to: NotRequired[str | None]
    """Only entries that happened at this time or earlier."""
    noise: NotRequired[bool | None]
    """false: without events whose `data` has `'noise': true`, such as lines of progress that an import kept. Only with `mode=words`."""
    order: NotRequired[Literal["newest", "relevance"] | None]
    """The newest entries first; or, of the newest 200 that match, those first that match best, then of the next 200."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""


class Session(TypedDict):
    id: str
    """The session."""
    project_id: str
    """The project that the token names."""
    user_id: str | None
    expires_in_s: NotRequired[int]
    """The session is deleted when unchanged for this many seconds. Absent: never."""
    parent_id: NotRequired[str]
    """The session with which this one is deleted. Absent: none."""
    forked_from: NotRequired[str]
    """The session from which this one was copied, as long as the original exists. Absent: none."""
    forked_at_seq: NotRequired[int]
    """The last seq of that session that was copied."""
    run: NotRequired[Run]
    configs: JsonObject
    """Any JSON object of the caller, stored with the session; `{}` if never set."""
    disable_task_tracking: bool
    created_at: str
    """When the session was created."""
    updated_at: str
    """When anything in the session last changed, including an added entry."""


class SessionAppend(TypedDict):
    session_id: str
    """The session; each at most once."""
    entries: NotRequired[list[NewEntry]]
    apply: NotRequired[list[str]]
    """Inputs of the inbox that become entries in the same commit, before the others and with their own ids: exactly once, or the whole request is refused (`not_pending`)."""
    fence: NotRequired[int]
    """The fence of the lease that the caller holds; by default that in the header `Annals-Fence`."""
    if_match: NotRequired[int]
    """Append only if the last seq of the session still has this value."""
    configs_patch: NotRequired[Mapping[str, object]]
    """Merged into the top level of the session's configs; null deletes a key. Not merged again if all entries are already stored."""


class SessionEvent(TypedDict):
    id: str
    """The event."""
    project_id: str
    """The project that the token names."""
    session_id: str
    """The session whose log contains it."""
    type: str
    """The kind of event, named by the caller."""
    data: JsonObject
    """The event itself: any JSON object."""
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    created_at: str
    """When it was stored. It never decreases along `seq`."""
    updated_at: str
    """The same as `created_at`: events do not change."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    retracted_by: NotRequired[int]
    """The seq of the event that retracted the entry. Absent: it was not retracted."""


class SessionsQuery(TypedDict):
    id_prefix: NotRequired[str | None]
    """The first characters of an id, at least 4: only sessions whose id begins with them, ordered by id. Cannot be combined with `user`, `filter_by_configs`, `parent` or `order_by`."""
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    filter_by_configs: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded. Only sessions whose `configs` contain it: nested, case- and type-sensitive. `{}` filters nothing."""
    parent: NotRequired[str | None]
    """A session's id: only the sessions directly below it. `none`: only sessions without a parent."""
    order_by: NotRequired[Literal["created_at", "last_activity"] | None]
    """What the list is ordered by: when sessions were created, or when anything in them last changed (`updated_at`), to the second. The order by last activity is up to date within a second or two, and a session that changes during a walk may be seen twice or not at all. It is built when a project first requests it; until it is complete, the answer is 503 `being_prepared`."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class SetRedactionBody(TypedDict):
    rules: NotRequired[list[SetRedactionBodyRules]]
    """In order: where two find the same, the first decides."""


class SetRedactionBodyRules(TypedDict):
    where: NotRequired[SetRedactionBodyRulesWhere]
    """Which entries, and which parts of them. Absent: all that is sent."""
    what: SetRedactionBodyRulesWhat
    """What is looked for."""
    do: Literal["mask", "hash", "drop", "refuse"]
    """`mask`: `<EMAIL_1>`, the same for the same value in a session. `hash`: `<EMAIL:…>`, the same in the project. `drop`: nothing. `refuse`: the request is refused; not for reading."""
    when: Literal["write", "read"]
    """`write`: before anything is stored. `read`: when masked keys read; without `where`."""


class SetRedactionBodyRulesWhat(TypedDict):
    pattern: str
    """A regular expression in the syntax of RE2."""
    as_: NotRequired[str]
    """The name in its masks; by default `REDACTED`."""


class SetRedactionBodyRulesWhere(TypedDict):
    """Which entries, and which parts of them. Absent: all that is sent."""

    kinds: NotRequired[list[Literal["event", "message"]]]
    types: NotRequired[list[str]]
    """Types of events."""
    roles: NotRequired[list[str]]
    """Roles of messages, as their blobs have them."""
    pointers: NotRequired[list[str]]
    """JSON pointers into an event's data or a message's blob: what is there, and below."""


class Skill(TypedDict):
    id: str
    """The skill."""
    user_id: str | None
    learning_space_id: str | None
    name: str
    """Its name, from the front matter of SKILL.md."""
    description: str
    """What it does and when to use it, from the same front matter."""
    source: Literal["written", "learnt"]
    """`written` by a person and uploaded, or `learnt` by a learning space."""
    meta: JsonObject
    """Any JSON object of the caller, stored with the skill; `{}` if never set."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    disk_id: str
    """The same as `id`: existing clients expect a disk, and there are none here."""
    file_index: list[SkillFileIndex]
    """Its files, by path."""


class SkillFile(TypedDict):
    path: str
    mime: str
    url: str | None
    content: SkillText | None


class SkillFileIndex(TypedDict):
    path: str
    """Its path within the skill."""
    mime: str
    """Its media type, by its extension."""
    bytes: int | None
    sha256: str | None


class SkillText(TypedDict):
    type: str
    """`text`, `json`, `csv` or `code`."""
    raw: str
    """The text."""


class SkillVersion(TypedDict):
    id: str
    """This version."""
    skill: str
    """The skill."""
    author: Literal["person", "model", "erasure"]
    """Who changed it."""
    reason: str
    """What changed."""
    statement_ids: list[str]
    text: str | None
    created_at: str
    """When."""


class SkillsQuery(TypedDict):
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class SpaceContext(TypedDict):
    text: str
    """For a prompt; empty if nothing fits."""
    tokens: int
    """About how many tokens `text` has."""
    ids: list[str]
    """The statements in `text`, in order."""
    items: list[SpaceContextItem]


class SpaceContextItem(TypedDict):
    id: str
    """The statement."""
    skill: str
    kind: Literal["procedure", "pitfall", "fact", "preference"]
    """What to do, what to avoid, how things are, or what a person wants."""
    text: str
    supports: int
    """Sessions that support it."""


class SpaceContextQuery(TypedDict):
    q: NotRequired[str | None]
    """Words of the task, such as the user's first message: statements that share them come first. Without it, statements with the most support come first."""
    max_tokens: NotRequired[int | None]
    """Most tokens of `text`."""


class SpaceHistoryQuery(TypedDict):
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""


class SpacePolicy(TypedDict):
    mode: Literal["off", "suggest", "auto"]
    """`suggest`: every statement waits for a person. `auto`: statements of a model become active when sessions of two users support them (in the space of a user, two sessions); procedures only if they also correlate with success in runs of the same task. Statements from rules wait for a person. `off`: nothing is learnt."""
    reward: NotRequired[str]
    """Where a session's configs have the reward, a number from 0 (failure) to 1 (success): names of keys, each after a slash."""
    group: NotRequired[str]
    """Where a session's configs have the task, by which runs are compared: names of keys, each after a slash."""
    max_tokens_per_day: NotRequired[int]
    """Most tokens of a model that the space may use in 24 hours."""


class SpaceSession(TypedDict):
    id: str
    """This record."""
    learning_space_id: str
    """The learning space."""
    session_id: str
    """The session that it learns from."""
    status: Literal["pending", "distilling", "queued", "skill_writing", "completed", "failed"]
    """`pending`: rules have not read it to its end. `queued`: it waits for its turn with the model. `distilling`, `skill_writing`: the model is at work. `completed`: it was learnt from; what is appended later is learnt from, too. `failed`: see `error`; if the model is unavailable, it is still retried from time to time. Without a model it is `completed` once rules have read it."""
    error: str | None
    learnt_seq: int
    """How far rules have read the log."""
    created_at: str
    """When the session was added to the space."""
    updated_at: str
    """When this record last changed."""


class SpaceSkill(TypedDict):
    id: str
    """This record."""
    learning_space_id: str
    """The learning space."""
    skill_id: str
    """The skill in it."""
    created_at: str
    """When it was included."""


class SpaceTokens(TypedDict):
    """Tokens of the model, as the budget counts them."""

    used: int
    """In the last 24 hours; a call in flight counts as an estimate."""
    max: int | None


class SpaceUsage(TypedDict):
    tokens: SpaceTokens
    """Tokens of the model, as the budget counts them."""
    days: list[SpaceUsageDay]
    """Newest first; a day without a call is left out."""


class SpaceUsageDay(TypedDict):
    day: str
    """In UTC: when the inputs were first sent."""
    step: Literal["reflect", "curate"]
    """What the model was asked to do."""
    inputs: int
    """Different inputs. An answered input is never sent again."""
    calls: int
    """Calls of the model, including those without an answer."""
    failed: int
    """Inputs without a usable answer."""
    tokens_in: int
    """Tokens sent."""
    tokens_out: int
    """Tokens received."""


class Statement(TypedDict):
    id: str
    """The statement."""
    learning_space_id: str
    """Its learning space."""
    skill: str | None
    kind: Literal["procedure", "pitfall", "fact", "preference"]
    """What to do, what to avoid, how things are, or what a person wants."""
    state: Literal["proposed", "active", "conflict", "retired", "revoked"]
    """`proposed` waits for a person; `active` is returned to agents; `conflict`: sessions contradict it; `retired`: a person rejected it; `revoked`: its sources were deleted, and its text with them."""
    author: Literal["rule", "model", "person"]
    """Who worded it first."""
    pinned: bool
    """A person wrote, edited or approved it: only people reword it."""
    text: str
    """The statement; empty if it was revoked."""
    supports: int
    """Sessions that support it."""
    contradicts: int
    """Sessions that contradict it."""
    used: int
    """Sessions that reported whether it helped."""
    helped: int
    """Those that it helped."""
    harmed: int
    """Those that it did not help."""
    cites: list[StatementCites]
    """The entries that it cites, at most 100."""
    created_at: str
    """When it was first stored."""
    updated_at: str
    """When it last changed."""


class StatementChange(TypedDict):
    state: NotRequired[Literal["active", "retired"]]
    """`active` approves it; `retired` rejects or withdraws it."""
    text: NotRequired[str]
    """The statement, in a sentence or two."""
    kind: NotRequired[Literal["procedure", "pitfall", "fact", "preference"]]
    """What to do, what to avoid, how things are, or what a person wants."""


class StatementCites(TypedDict):
    session_id: str
    """The session."""
    seq: int
    """The entry in it."""
    quote: str
    """Words of that entry."""
    polarity: Literal["+", "-"]
    """`+`: it supports the statement; `-`: it contradicts it."""


class StatementsQuery(TypedDict):
    state: NotRequired[Literal["proposed", "active", "conflict", "retired", "revoked"] | None]
    """`proposed` waits for a person; `active` is returned to agents; `conflict`: sessions contradict it; `retired`: a person rejected it; `revoked`: its sources were deleted, and its text with them."""
    kind: NotRequired[Literal["procedure", "pitfall", "fact", "preference"] | None]
    """What to do, what to avoid, how things are, or what a person wants."""
    skill: NotRequired[str | None]
    """The skill that it belongs to."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class SummaryMessage(TypedDict):
    blob: Mapping[str, object]
    """One whole message in the provider's own format; of the Responses API, one item."""
    format: NotRequired[Literal["openai", "anthropic", "gemini", "acontext", "responses"]]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""


class TimelineEvent(TypedDict):
    kind: Literal["event"]
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    id: str
    """The event."""
    project_id: str
    """The project that the token names."""
    session_id: str
    """The session whose log contains it."""
    type: str
    """The kind of event, named by the caller."""
    data: JsonObject
    """The event itself: any JSON object."""
    created_at: str
    """When it was stored."""
    updated_at: str
    """As `created_at`."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    retracted_by: NotRequired[int]
    """The seq of the event that retracted the entry. Absent: it was not retracted."""


class TimelineMessage(TypedDict):
    kind: Literal["message"]
    id: str
    """The message."""
    session_id: str
    """The session whose log contains it."""
    parent_id: str | None
    role: Literal["user", "assistant"]
    meta: JsonObject
    """Any JSON object of the caller, stored with the message, up to 64 KiB."""
    task_id: None
    session_task_process_status: Literal["pending", "disable_tracking"]
    created_at: str
    """When it was stored. It never decreases along `seq`."""
    updated_at: str
    """When its meta last changed."""
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    key: NotRequired[str]
    """The caller's name for what the entry says. The newest entry of each key is its latest."""
    occurred_at: NotRequired[str]
    """When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock."""
    format: Literal["openai", "anthropic", "gemini", "acontext", "responses"]
    """The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form."""
    blob: JsonObject
    """One whole message in the provider's own format; of the Responses API, one item."""
    retracted_by: NotRequired[int]
    """The seq of the event that retracted the entry. Absent: it was not retracted."""


class TimelineQuery(TypedDict):
    kind: NotRequired[Literal["message", "event"] | None]
    """Only entries of this kind."""
    type: NotRequired[str | None]
    """The kind of event, named by the caller."""
    after_seq: NotRequired[int | None]
    """Only entries with a greater seq."""
    ids: NotRequired[str | None]
    """Up to 200 ids of entries, separated by commas: these entries in this order, without those that the session does not have. Not together with other parameters."""
    limit: NotRequired[int | None]
    """Most items per page. It may change between pages."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class Token(TypedDict):
    id: str
    """The token, for revoking it."""
    project_id: str
    """Its project."""
    name: str
    scopes: list[Literal["read", "write", "append", "ingest", "admin"]]
    """What the token allows: `read` to read; `write` everything else but keys; `append` only appends and new sessions; `ingest` only to send traces and logs of OpenTelemetry; `admin` only the keys of the project."""
    masked: bool
    """Whether it reads masks in place of e-mail addresses, phone numbers, cards, accounts and secrets, and no attachments."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    revoked_at: str | None


class TokenCounts(TypedDict):
    total_tokens: int
    counted: Literal["all", "text"]
    """`all`: everything that is sent. `text`: after an upgrade, the session is not yet recounted completely, and the total will grow."""
    auto_compaction: NotRequired[Literal["waits", "running", "failed"]]
    """Whether the model will write a summary of the beginning of the session. `waits`: it is due, or the model is unavailable or its quota used up. `running`: it is being written. `failed`: the answers of the model were unusable; it is asked again once the context has grown. Absent: no summary is due."""


class TokenSessions(TypedDict):
    """The sessions that the token reaches: one, all of a user, or all below another."""

    session_id: NotRequired[str]
    """This session."""
    user: NotRequired[str]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    parent: NotRequired[str]
    """The sessions below this one, at any depth."""


class Tool(TypedDict):
    name: str
    """The name of the tool."""
    calls: int
    """How often it was called."""
    failures: int
    """Calls whose result reports a failure."""
    unanswered: int
    """Calls that have no result."""
    sessions: int
    """Sessions that called it."""
    p50_ms: int | None
    p95_ms: int | None
    last_called_at: str | None


class ToolFailures(TypedDict):
    name: str
    """The name of the tool."""
    calls: int
    """How often it was called."""
    failures: int
    """Calls whose result reports a failure."""
    unanswered: int
    """Calls that have no result."""
    sessions: int
    """Sessions that called it."""
    p50_ms: int | None
    p95_ms: int | None
    last_called_at: str | None
    groups: list[ToolFailuresGroups]
    """Its failed calls, grouped by the common part of their messages, most frequent first."""
    has_more: bool
    """Whether there are more groups than `limit`."""
    complete: bool
    """Whether every call stored before the request is counted. If not, each number is a lower bound."""
    counted_from: str | None
    indexing: ToolFailuresIndexing | None


class ToolFailuresGroups(TypedDict):
    message: str | None
    failures: int
    """Failed calls."""
    sessions: int
    """Sessions with these calls."""
    first_at: str
    """When the first of the calls was made."""
    last_at: str
    """When the last of the calls was made."""
    examples: list[ToolFailuresGroupsExamples]
    """The newest, up to 3."""


class ToolFailuresGroupsExamples(TypedDict):
    session_id: str
    """The session that called the tool."""
    title: str | None
    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    result_seq: int | None
    called_at: str
    """When it was called."""
    result: str
    """What the tool returned, up to 300 characters."""
    said: ToolFailuresGroupsExamplesSaid | None
    called: ToolFailuresGroupsExamplesCalled | None


class ToolFailuresGroupsExamplesCalled(TypedDict):
    """Which tool was called next, after this result."""

    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    name: str


class ToolFailuresGroupsExamplesSaid(TypedDict):
    """What the assistant said next, up to 300 characters."""

    seq: int
    """The entry's number in its session: 1, 2, 3, … without gaps, in commit order."""
    text: str


class ToolFailuresIndexing(TypedDict):
    """Progress of reading the stored sessions, which the first request starts; null when it is done."""

    sessions_done: int
    """Sessions that have been read."""
    sessions: int
    """Sessions of the project."""


class ToolPage(TypedDict):
    items: list[Tool]
    """The tools that failed most come first."""
    has_more: bool
    """Whether there are more tools than `limit`."""
    complete: bool
    """Whether every call stored before the request is counted. If not, each number is a lower bound."""
    counted_from: str | None
    indexing: ToolPageIndexing | None


class ToolPageIndexing(TypedDict):
    """Progress of reading the stored sessions, which the first request starts; null when it is done."""

    sessions_done: int
    """Sessions that have been read."""
    sessions: int
    """Sessions of the project."""


class ToolQuery(TypedDict):
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    filter_by_configs: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded. Only calls in sessions whose `configs` contain it, as in the list of sessions."""
    from_: NotRequired[str | None]
    """Only calls that were made at this time or later."""
    to: NotRequired[str | None]
    """Only calls that were made before this time."""
    limit: NotRequired[int | None]
    """Most groups of failures that are returned."""


class ToolsQuery(TypedDict):
    user: NotRequired[str | None]
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    filter_by_configs: NotRequired[Mapping[str, object] | None]
    """A JSON object, URL-encoded. Only calls in sessions whose `configs` contain it, as in the list of sessions."""
    from_: NotRequired[str | None]
    """Only calls that were made at this time or later."""
    to: NotRequired[str | None]
    """Only calls that were made before this time."""
    limit: NotRequired[int | None]
    """Most tools that are returned."""


class Usage(TypedDict):
    counted_at: str
    """When sessions, entries and bytes were counted."""
    sessions: UsageSessions
    entries: UsageEntries
    bytes: UsageBytes
    blobs: UsageBlobs
    blob_bytes: UsageBlobBytes
    statements: UsageStatements
    model_tokens: UsageModelTokens
    tails: UsageTails
    requests_per_second: UsageRequestsPerSecond
    days: list[UsageDays]
    """What was stored and used on each day, whether or not it was deleted since; of statements, those that still exist. Newest first; a day without use is left out."""


class UsageBlobBytes(TypedDict):
    used: int
    """Of all blobs."""
    max: int | None


class UsageBlobs(TypedDict):
    used: int
    """How many there are."""


class UsageBytes(TypedDict):
    used: int
    """Of all entries, and of input that waits for a runner, as the JSON in which they were sent."""
    max: int | None


class UsageDays(TypedDict):
    day: str
    """In UTC."""
    sessions: int
    entries: int
    bytes: int
    blobs: int
    blob_bytes: int
    statements: int
    model_tokens: int


class UsageEntries(TypedDict):
    used: int
    """Messages and events in the logs of all sessions."""
    max: int | None


class UsageModelTokens(TypedDict):
    used: int
    """Of models, today, in UTC; a call under way counts with an estimate."""
    max: int | None


class UsageRequestsPerSecond(TypedDict):
    max: int | None


class UsageSessions(TypedDict):
    used: int
    """How many there are."""
    max: int | None


class UsageStatements(TypedDict):
    used: int
    """Of all learning spaces, in every state."""


class UsageTails(TypedDict):
    used: int
    """Live tails open at the node that answers; the quota applies to each node."""
    max: int | None


class User(TypedDict):
    id: str
    """The user; sessions and learning spaces name it as `user_id`."""
    project_id: str
    """The project that the token names."""
    identifier: str
    """The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use."""
    created_at: str
    """When the identifier was first used."""
    updated_at: str
    """When the user last changed."""


class UserResources(TypedDict):
    counts: UserResourcesCounts


class UserResourcesCounts(TypedDict):
    sessions_count: int
    skills_count: int
    learning_spaces_count: int
    disks_count: int


class UsersQuery(TypedDict):
    limit: NotRequired[int | None]
    """Most users per page. Absent: all of them, streamed."""
    cursor: NotRequired[str | None]
    """The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused."""
    time_desc: NotRequired[bool | None]
    """true: newest first. false: oldest first."""


class Webhook(TypedDict):
    id: str
    """The webhook."""
    url: str
    """The URL that receives deliveries: http or https, without a user name or a fragment."""
    events: list[str]
    """`message`: every message. `event`: every event. `event.<type>`: events of that type. `request.opened`: requests of runners. `input.added`: input that waits for a runner."""
    created_at: str
    """When it was created. Entries stored before are not sent."""
    waiting_sessions: int
    """Sessions with entries, and inputs, that may still have to be sent; counted up to 1,000."""
    last_error: str | None
    last_error_at: str | None
    given_up: int
    """Entries and inputs that could not be delivered within a day."""


class WorkQuery(TypedDict):
    owner: str
    """Names the runner: one name for each process, such as a host and a process id."""
    ttl_ms: int
    """How long the lease holds unless it is renewed, in ms."""
    max: NotRequired[int]
    """Most sessions."""
    wait_ms: NotRequired[int]
    """How long to wait if the lease is held, in ms."""
    filter_by_configs: NotRequired[Mapping[str, object]]
    """Only sessions whose `configs` contain it."""


Found: TypeAlias = FoundPage | FoundSessions
NewEntry: TypeAlias = NewEventEntry | NewMessageEntry
NewInput: TypeAlias = NewEventInput | NewMessageInput
TimelineItem: TypeAlias = TimelineMessage | TimelineEvent
"""An entry of a log: an event unchanged, or a message with its stored blob and its format."""
