// What the measured speed of copies between GPUs says about the node.
#pragma once

#include "reports/report.h"
#include "src/model/topo/node.h"
#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl {

/// Below this share of the median of pairs at the same declared distance, a pair is slow.
inline constexpr double slow_link_share = 0.7;
/// Below this share of the rate of the declared NVLink, a pair is slow whatever the others do: copy
/// engines reach 80% or more, and PCIe is far below.
inline constexpr double declared_link_share = 0.5;

/// Rows "gpu-link": the time of one copy, the bandwidth in one direction, and whether all bytes
/// arrived. A pair that the driver refuses is skipped with the reason.
std::vector<ResultRow> link_rows(const Node& node, const cuda::LinkSurvey& survey);

/// - gpu-link-slow (warning): pairs below slow_link_share of the median of those at the same
///   declared distance (NV18, PIX, ...), both directions counted
/// - gpu-link-below-declared (warning): other pairs below declared_link_share of the NVLink that
///   joins them by the node model, where that knows a rate
/// - gpu-p2p-unavailable (error): NVLink joins the pair, and the driver refuses
/// - gpu-link-corrupt (error): bytes that did not arrive
/// - gpu-link-unmeasured (warning): a GPU that could not be used
Findings judge_links(const Node& node, const cuda::LinkSurvey& survey);

} // namespace shmemctl
