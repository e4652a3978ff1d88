import Type from '#typebox'
import { Strict } from '../contract/schema.js'

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Names = Type.Array(Type.String({ maxLength: 256 }), { maxItems: 1_000 })
const WHICH = { keep_tools: Type.Optional(Names), gt_token: Type.Optional(Count) }

/** What `edit_strategies` takes, as JSON. */
export const EditStrategies = Type.Array(
  Type.Union(
    [
      Strict({
        type: Type.Literal('remove_tool_result'),
        params: Type.Optional(
          Strict({
            ...WHICH,
            keep_recent_n_tool_results: Type.Optional(Count),
            tool_result_placeholder: Type.Optional(Type.String({ maxLength: 256 })),
          }),
        ),
      }),
      Strict({
        type: Type.Literal('remove_tool_call_params'),
        params: Type.Optional(Strict({ ...WHICH, keep_recent_n_tool_calls: Type.Optional(Count) })),
      }),
      Strict({ type: Type.Literal('token_limit'), params: Strict({ limit_tokens: Count }) }),
      Strict({ type: Type.Literal('middle_out'), params: Strict({ token_reduce_to: Count }) }),
    ],
    { 'x-discriminator': 'type' },
  ),
  { maxItems: 16 },
)
