// What the measured speed of copies between GPUs shows about the node.
#pragma once

#include "reports/report.h"
#include "src/model/topo/node.h"
#include "src/runtime/cuda/gpu_survey.h"

namespace shmemctl {

/// A pair is slow if it is below this share of the median of pairs at the same declared distance.
inline constexpr double slow_link_share = 0.7;
/// A pair is slow if it is below this share of the rate of its declared NVLink, however fast others
/// are. Copy engines reach 80% or more, and PCIe is far below.
inline constexpr double declared_link_share = 0.5;

/// Rows "gpu-link": the time of one copy, the bandwidth in one direction, and whether all bytes
/// arrived. A pair that was refused or not measured is skipped, with the reason.
std::vector<ResultRow> link_rows(const Node& node, const cuda::LinkSurvey& survey);

/// - gpu-link-slow (warning): pairs below slow_link_share of the median of pairs at the same
///   declared distance (NV18, PIX, ...); each direction is a pair
/// - gpu-link-below-declared (warning): other pairs below declared_link_share of the rate of the
///   NVLink that joins them by the node model, if the model knows it
/// - gpu-p2p-unavailable (error): NVLink joins the pair, but the driver refuses peer access
/// - gpu-link-corrupt (error): a copy after which the target had other bytes than the source
/// - gpu-link-unmeasured (warning): some or all pairs could not be measured
Findings judge_links(const Node& node, const cuda::LinkSurvey& survey);

} // namespace shmemctl
