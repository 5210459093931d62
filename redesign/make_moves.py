"""Makes moves.tsv (stage, old, new, action, why) from the reviewer's table, corrected, and from rows of our own."""
import csv, os, sys
from pathlib import Path

REVIEW = os.environ["REVIEW"]  # a table of moves: old, new, action, why
# corrections of the reviewer's destinations, by old path under strop/
FIX = {
    # a bundled environment is found by its file's name, and its name is part of task ids, so of the bits of a run
    "environments/bundled/critiques.py": "environments/bundled/critiques.py",
    "environments/bundled/next_segment.py": "environments/bundled/next_segment.py",
    "environments/bundled/next_state.py": "environments/bundled/next_state.py",
    "environments/bundled/sessions.py": "environments/bundled/sessions.py",
    "environments/bundled/crop.py": "environments/bundled/crop.py",
    "environments/bundled/market.py": "environments/bundled/market.py",
    "environments/bundled/pages.py": "environments/bundled/pages.py",
    # no two files of one name in a stage, and no empty names
    "environments/tools/search_tool.py": "environments/tools/search_tool.py",
    "environments/wrappers/around.py": "environments/wrappers/around.py",
    "environments/isolation/batched_answers.py": "environments/isolation/batched_answers.py",
    "environments/isolation/worker.py": "environments/isolation/worker.py",
    "environments/isolation/client.py": "environments/isolation/client.py",
    "environments/multi_agent/world_model_experiences.py": "environments/multi_agent/world_model_experiences.py",
    "environments/judging/first_error_question.py": "environments/judging/first_error_question.py",
    "generate/engines/cpu/torch_engine.py": "generate/engines/cpu/torch_engine.py",
    "generate/engines/paged/paged_engine.py": "generate/engines/paged/paged_engine.py",
    "generate/engines/diffusion/diffusion_engine.py": "generate/engines/diffusion/diffusion_engine.py",
    "generate/engines/vllm/vllm_engine.py": "generate/engines/vllm/vllm_engine.py",
    "generate/engines/vllm/vllm_cpu_worker.py": "generate/engines/vllm/vllm_cpu_worker.py",
    "generate/engines/vllm/vllm_draw.py": "generate/engines/vllm/vllm_draw.py",
    "generate/engines/vllm/vllm_request.py": "generate/engines/vllm/vllm_request.py",
    "generate/engines/vllm/vllm_start.py": "generate/engines/vllm/vllm_start.py",
    "generate/engines/vllm/vllm_worker.py": "generate/engines/vllm/vllm_worker.py",
    "generate/engines/select_engine.py": "generate/engines/select_engine.py",
    "generate/engines/cpu/kv_cache.py": "generate/engines/cpu/kv_cache.py",
    "generate/engines/cpu/decode_rows.py": "generate/engines/cpu/decode_rows.py",
    "generate/engines/paged/batch_layout.py": "generate/engines/paged/batch_layout.py",
    "generate/engines/wrappers/chunked.py": "generate/engines/wrappers/chunked.py",
    "generate/llm_clients/support/retry.py": "generate/llm_clients/support/retry.py",
    "concurrency.py": "concurrency.py",
    "observe/examine.py": "observe/examine.py",  # every module of health/ is a rule
    "generate/guided_decoding.py": "generate/guided_decoding.py",
    "generate/llm_clients/openai_endpoint.py": "generate/llm_clients/openai_endpoint.py",
    "generate/llm_clients/without_model.py": "generate/llm_clients/without_model.py",
    "generate/llm_clients/support/http_post.py": "generate/llm_clients/support/http_post.py",
    "generate/serve/ask_requests.py": "generate/serve/ask_requests.py",
    "generate/serve/rollout_access.py": "generate/serve/rollout_access.py",
    "generate/serve/serve_session.py": "generate/serve/serve_session.py",
    "generate/rollout.py": "generate/rollout.py",
    "success.py": "success.py",
    "standins/rewrite/dispatch.py": "standins/rewrite/dispatch.py",
    "recipes/reward/prlcoder.py": "recipes/reward/prlcoder.py",  # stage B takes it into prlcoder
    "stats/task_lineage.py": "stats/task_lineage.py",
    "simulate/transplant.py": "simulate/transplant.py",
    "control/admission/support/admission_state.py": "control/admission/support/admission_state.py",
    "control/budgets/support/resource_price.py": "control/budgets/support/resource_price.py",
    "control/task_generators/support/probing.py": "control/task_generators/support/probing.py",
    "control/task_generators/support/validation.py": "control/task_generators/support/validation.py",
    "control/task_generators/support/prompts.py": "control/task_generators/support/prompts.py",
    "control/samplers/few.py": "control/samplers/few.py",
    "control/samplers/permuted_control.py": "control/samplers/permuted_control.py",
    "control/estimators/generalist.py": "control/estimators/generalist.py",
    "control/estimators/prompt_value_head.py": "control/estimators/prompt_value_head.py",
    "filter/judges/pairwise_judge.py": "filter/judges/pairwise_judge.py",
    "filter/judges/checklist_items.py": "filter/judges/checklist_items.py",
    "filter/function_signature.py": "filter/function_signature.py",
    "observe/metrics/step_metrics.py": "observe/metrics/step_metrics.py",
    "observe/report/write_report.py": "observe/report/write_report.py",
    "training/verify_logprobs.py": "training/verify_logprobs.py",
    "observe/metrics/reward_divergence.py": "observe/metrics/reward_divergence.py",
    "observe/run_files/run_history.py": "observe/run_files/run_history.py",
    "observe/metrics/no_signal_warning.py": "observe/metrics/no_signal_warning.py",
    "observe/dashboard/attempt_page.py": "observe/dashboard/attempt_page.py",
    "observe/dashboard/pass_rates_page.py": "observe/dashboard/pass_rates_page.py",
    "observe/dashboard/live_pass_rates.py": "observe/dashboard/live_pass_rates.py",
    "observe/health/training_data.py": "observe/health/training_data.py",
    "filter/rewards/majority_vote.py": "filter/rewards/majority_vote.py",
}
# merges wait for stage B: in stage A they get a file of their own in the room
MERGE_NAMES = {
    "control/samplers/support/bandit_metrics.py": "control/samplers/support/bandit_metrics.py",
    "control/samplers/support/bandit_arms.py": "control/samplers/support/bandit_arms.py",
    "control/estimators/support/nearest_tasks.py": "control/estimators/support/nearest_tasks.py",
    "control/estimators/support/recent_outcomes.py": "control/estimators/support/recent_outcomes.py",
    "environments/judging/first_error_question.py": "environments/judging/first_error_question.py",
    "environments/multi_agent/world_model_experiences.py": "environments/multi_agent/world_model_experiences.py",
    "filter/paid_text.py": "filter/paid_text.py",
    "filter/span_rewards.py": "filter/span_rewards.py",
    "generate/agents/support/episode_loop.py": "generate/agents/support/episode_loop.py",
    "generate/agents/support/episode_loop.py": "generate/agents/support/episode_loop.py",
    "generate/strategies/support/ask_policy.py": "generate/strategies/support/ask_policy.py",
    "generate/strategies/support/ask_policy.py": "generate/strategies/support/ask_policy.py",
    "generate/guided_decoding.py": "generate/guided_decoding.py",
    "generate/strategies/support/prompt_swap.py": "generate/strategies/support/prompt_swap.py",
    "generate/strategies/support/prompt_swap.py": "generate/strategies/support/prompt_swap.py",
}
OWN = """
abilities.py capabilities.py
face.py api.py
machines.py backends.py
progress.py run_state.py
workers/untrusted_answers.py workers/untrusted_answers.py
workers/child.py workers/child.py
workers/entry.py workers/entry.py
workers/foreign_checks.py workers/foreign_checks.py
workers/frames.py workers/frames.py
workers/keeper.py workers/keeper.py
workers/limits.py workers/limits.py
workers/pickled_parts.py workers/pickled_parts.py
sandbox/bubblewrap.py sandbox/bubblewrap.py
sandbox/kernel_isolation/confine.py sandbox/kernel_isolation/confine.py
sandbox/kill_tree.py sandbox/kill_tree.py
sandbox/kernel_isolation/landlock.py sandbox/kernel_isolation/landlock.py
sandbox/python/unconfined_python.py sandbox/python/unconfined_python.py
sandbox/python/python_pool.py sandbox/python/python_pool.py
sandbox/execution.py sandbox/execution.py
sandbox/kernel_isolation/seccomp.py sandbox/kernel_isolation/seccomp.py
sandbox/python/warm_interpreter.py sandbox/python/warm_interpreter.py
sandbox/watched_process.py sandbox/watched_process.py
storage/llm_answers.py storage/llm_answers.py
storage/ledger/browser.py storage/ledger/browser.py
storage/checkpoint.py storage/checkpoint.py
storage/run_folder.py storage/run_folder.py
storage/hub.py storage/hub.py
storage/ledger/fates_by_kind.py storage/ledger/fates_by_kind.py
storage/ledger/ledger.py storage/ledger/ledger.py
storage/named_files.py storage/named_files.py
storage/ledger/schema.py storage/ledger/schema.py
storage/ledger/rows.py storage/ledger/rows.py
storage/run_source.py storage/run_source.py
storage/ledger/turn_bytes.py storage/ledger/turn_bytes.py
launch/checks/warnings.py launch/checks/warnings.py
launch/checks/diffusion_checks.py launch/checks/diffusion_checks.py
launch/checks/prompt_lengths.py launch/checks/prompt_lengths.py
launch/checks/preflight.py launch/checks/preflight.py
launch/checks/preflight_all.py launch/checks/preflight_all.py
launch/checks/preflight_all.py launch/checks/preflight_all.py
launch/checks/gpu_memory_plan.py launch/checks/gpu_memory_plan.py
launch/checks/task_supply.py launch/checks/task_supply.py
launch/running/more_steps.py launch/running/more_steps.py
launch/running/gc_pause.py launch/running/gc_pause.py
launch/running/launch.py launch/running/launch.py
launch/running/provenance_check.py launch/running/provenance_check.py
launch/running/saving.py launch/running/saving.py
launch/running/stopping.py launch/running/stopping.py
launch/experiments/preloaded_forks.py launch/experiments/preloaded_forks.py
launch/experiments/retrain.py launch/experiments/retrain.py
launch/experiments/side_by_side.py launch/experiments/side_by_side.py
models/off_loop_compute.py models/off_loop_compute.py
models/torch_setup.py models/torch_setup.py
models/loading/check_folder.py models/loading/check_folder.py
models/optimizers/low_memory_adamw.py models/optimizers/low_memory_adamw.py
models/layers/scalar_head.py models/layers/scalar_head.py
models/tokens/mask_token.py models/tokens/mask_token.py
models/optimizers/low_precision.py models/optimizers/low_precision.py
models/loading/model_shape.py models/loading/model_shape.py
models/layers/prompt_states.py models/layers/prompt_states.py
models/silence_libraries.py models/silence_libraries.py
models/loading/load_weights.py models/loading/load_weights.py
models/loading/check_folder.py models/loading/check_folder.py
models/layers/prompt_states.py models/layers/prompt_states.py
weights/per_policy.py weights/per_policy.py
weights/shared_base_weights.py weights/shared_base_weights.py
weights/mapped_memory.py weights/mapped_memory.py
weights/unfuse.py weights/unfuse.py
placement/engine_host.py placement/engine_host.py
placement/lockstep.py placement/lockstep.py
placement/process_engine.py placement/process_engine.py
placement/ray_engine.py placement/ray_engine.py
training/comparison_groups.py training/comparison_groups.py
training/requirements.py training/requirements.py
training/policy_stats.py training/policy_stats.py
training/top_k_stats.py training/top_k_stats.py
training/split_batch.py training/split_batch.py
training/machine/thread_parallel.py training/machine/thread_parallel.py
training/machine/ema_policy.py training/machine/ema_policy.py
training/machine/value_model.py training/machine/value_model.py
training/machine/rank_processes.py training/machine/rank_processes.py
training/machine/old_policies.py training/machine/old_policies.py
training/machine/trainer_state.py training/machine/trainer_state.py
training/machine/open_model.py training/machine/open_model.py
training/machine/weight_copies.py training/machine/weight_copies.py
training/machine/packed_sequences.py training/machine/packed_sequences.py
training/machine/step_totals.py training/machine/step_totals.py
training/machine/masked_views.py training/machine/masked_views.py
training/machine/full_weights.py training/machine/full_weights.py
training/machine/batch_transfer.py training/machine/batch_transfer.py
training/arithmetic/reshaped_rewards.py training/arithmetic/reshaped_rewards.py
training/arithmetic/token_draws.py training/arithmetic/token_draws.py
training/arithmetic/tree_lineage.py training/arithmetic/tree_lineage.py
training/arithmetic/ridge_regression.py training/arithmetic/ridge_regression.py
training/arithmetic/td_traces.py training/arithmetic/td_traces.py
training/arithmetic/turn_returns.py training/arithmetic/turn_returns.py
training/arithmetic/verdict_logits.py training/arithmetic/verdict_logits.py
replay/memory/held_groups.py replay/memory/held_groups.py
attack/run_attack.py attack/run_attack.py
attack/hostile_replies.py attack/hostile_replies.py
attack/results.py attack/results.py
simulate/reference_samplers.py simulate/reference_samplers.py
simulate/compare_samplers.py simulate/compare_samplers.py
simulate/training_loop.py simulate/training_loop.py
pocket/target_accuracy.py pocket/target_accuracy.py
pocket/measure.py pocket/measure.py
pocket/search_tasks.py pocket/search_tasks.py
effects/prior_runs.py effects/prior_runs.py
effects/diffusion_model.py effects/diffusion_model.py
cli/fields/text_to_values.py cli/fields/text_to_values.py
cli/fields/recipe_help.py cli/fields/recipe_help.py
cli/estimate_duration.py cli/estimate_duration.py
cli/fields/field_help.py cli/fields/field_help.py
cli/live_table.py cli/live_table.py
cli/app.py cli/app.py
cli/closed_output.py cli/closed_output.py
cli/run_outputs.py cli/run_outputs.py
cli/sample_size_advice.py cli/sample_size_advice.py
cli/fields/named_parts.py cli/fields/named_parts.py
cli/experiments.py cli/experiments.py
cli/fields/arguments.py cli/fields/arguments.py
recipes/llm_clients.py recipes/llm_clients.py
recipes/dataset_paths.py recipes/dataset_paths.py
recipes/model_paths.py recipes/model_paths.py
recipes/diffusion.py recipes/diffusion.py
recipes/environment_specs.py recipes/environment_specs.py
recipes/user_rewards.py recipes/user_rewards.py
recipes/preference_pairs.py recipes/preference_pairs.py
recipes/reward_model_runs.py recipes/reward_model_runs.py
recipes/warmup.py recipes/warmup.py
recipes/environments.py recipes/environments.py
recipes/environment_specs.py recipes/environment_specs.py
"""
KEEP_FOR_NOW = {  # recipes/setup needs recipe_files() to skip it: done in the patch of stage A
}
# folders whose remaining files (new ones on a newer main, inlined ones until stage B) go along
FOLDERS = """
sandbox sandbox
processes workers
disk storage
start launch/running
control/estimators control/estimators
control/admission control/admission
control/task_generators control/task_generators
standins/rewrite standins/rewrite
generate/llm_clients generate/llm_clients
generate/strategies/trees generate/strategies/trees
generate/serve/example_clients generate/serve/example_clients
environments/external environments/external
environments/bundled environments/bundled
environments/isolation environments/isolation
environments/multi_agent environments/multi_agent
observe/health observe/health
observe/dashboard observe/dashboard
"""
DOCSTRINGS = {}

rows = []
def add(stage, old, new, action, why): rows.append((stage, old, new, action, why))
for r in csv.DictReader(open(REVIEW), delimiter="\t"):
    old, new = r["old"].removeprefix("strop/"), r["new"].removeprefix("strop/")
    if r["action"] == "inline into paper": continue  # stage B computes ownership on the tree as it is then
    if r["action"] == "merge":
        add("A", old, MERGE_NAMES[old], "move", r["why"]); continue
    if old.startswith("generate/serve/example_clients/"): continue  # commands name these files: they go with their folder
    new = FIX.get(old, new)
    if old != new: add("A", old, new, "move", r["why"])
have = {r[1] for r in rows}
for line in OWN.strip().splitlines():
    old, new = line.split()
    assert old not in have, old
    add("A", old, new, "move", "")
for line in FOLDERS.strip().splitlines():
    old, new = line.split()
    if old != new: add("A", old, new, "folder", "")
dup = {}
for r in rows:
    if r[3] == "move":
        assert r[2] not in dup, r
        dup[r[2]] = r
with open(Path(__file__).parent / "moves.tsv", "w") as f:
    f.write("stage\told\tnew\taction\twhy\n")
    for r in rows: f.write("\t".join(r) + "\n")
print(len(rows))
