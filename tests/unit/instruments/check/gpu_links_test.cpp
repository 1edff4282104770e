// What measured copies between GPUs say about a node whose distances are known.
#include "src/instruments/check/gpu_links.h"

#include <gtest/gtest.h>

#include "reports/text.h"
#include "src/instruments/doctor/gpu_links.h"

namespace shmemctl {
namespace {

/// N GPUs at 0000:10:00.0, 0000:11:00.0, ...; all distances as in `declared`.
Node node_with(int n_gpus, const Distance& declared) {
  Node node;
  for (int i = 0; i < n_gpus; ++i) {
    PciDevice device;
    device.address = {0, static_cast<std::uint8_t>(0x10 + i), 0, 0};
    node.pci.push_back(device);
    Gpu gpu;
    gpu.index = gpu.pci = i;
    gpu.vendor = "nvidia";
    node.gpus.push_back(gpu);
  }
  const auto count = static_cast<std::size_t>(n_gpus);
  DistanceMatrix matrix(count, std::vector<Distance>(count, declared));
  for (std::size_t i = 0; i < count; ++i)
    matrix[i][i] = {PathClass::self, 0, ""};
  node.recorded = matrix;
  return node;
}

const Distance nv18{PathClass::nvlink, 18, ""}, sys{PathClass::sys, 0, ""};

/// All pairs at that speed. CUDA numbers the GPUs the other way round.
cuda::LinkSurvey survey_of(int n_gpus, double speed_GBps) {
  cuda::LinkSurvey survey;
  survey.copy_bytes = 1000000;
  for (int i = n_gpus; i-- > 0;)
    survey.gpus.push_back("0000:1" + std::to_string(i) + ":00.0");
  for (int source = 0; source < n_gpus; ++source)
    for (int target = 0; target < n_gpus; ++target)
      if (source != target) {
        const double time_us = 1000 / speed_GBps;
        survey.samples.push_back(
            {source, target, "", "", {time_us, time_us * 0.9, time_us * 1.5}, ""});
      }
  return survey;
}

cuda::LinkSample& pair(cuda::LinkSurvey& survey, int source, int target) {
  for (cuda::LinkSample& sample : survey.samples)
    if (sample.source == source && sample.target == target)
      return sample;
  throw std::out_of_range("pair");
}

void slow_down(cuda::LinkSample& sample, double factor) {
  for (double& time : sample.copy_us)
    time *= factor;
}

TEST(GpuLinks, EvenSpeedsAreNoFinding) {
  const Node node = node_with(4, nv18);
  cuda::LinkSurvey survey = survey_of(4, 400);
  EXPECT_EQ(judge_links(node, survey), Findings{});
  slow_down(pair(survey, 0, 3), 1.4); // 71%
  EXPECT_EQ(judge_links(node, survey), Findings{});
}

TEST(GpuLinks, APairBelowTheOthersIsNamed) {
  const Node node = node_with(4, nv18);
  cuda::LinkSurvey survey = survey_of(4, 400);
  slow_down(pair(survey, 0, 3), 2); // GPU3 -> GPU0 in PCI order
  const Findings findings = judge_links(node, survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-link-slow");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].subject, "GPUs at NV18");
  EXPECT_NE(findings[0].message.find("1 pair copies below 70% of the 400.0 GB/s"),
            std::string::npos)
      << findings[0].message;
  EXPECT_NE(findings[0].message.find("GPU3 -> GPU0 at 200.0 GB/s"), std::string::npos)
      << findings[0].message;
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(GpuLinks, ManySlowPairsAreCounted) {
  const Node node = node_with(8, nv18);
  cuda::LinkSurvey survey = survey_of(8, 400);
  for (int peer = 1; peer < 8; ++peer) {
    slow_down(pair(survey, 0, peer), 10);
    slow_down(pair(survey, peer, 0), 10);
  }
  const Findings findings = judge_links(node, survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("14 pairs copy"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[0].message.find("and 8 more"), std::string::npos) << findings[0].message;
}

TEST(GpuLinks, OnlyPairsOfOneDistanceAreCompared) {
  Node node = node_with(4, sys);
  for (const auto& [a, b] : {std::pair{0, 1}, {2, 3}}) {
    (*node.recorded)[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = nv18;
    (*node.recorded)[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = nv18;
  }
  cuda::LinkSurvey survey = survey_of(4, 20);
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {2, 3}, {3, 2}})
    slow_down(pair(survey, a, b), 0.05);
  EXPECT_EQ(judge_links(node, survey), Findings{});
}

/// Each GPU has 18 links of 26.5 GB/s: 477 GB/s.
Node nvswitch_node(int n_gpus) {
  Node node = node_with(n_gpus, nv18);
  for (Gpu& gpu : node.gpus) {
    GpuLink link;
    link.target = LinkTarget::nvswitch;
    link.count = 18;
    link.bandwidth_GBps = known(26.5, "test");
    gpu.links.push_back(link);
  }
  return node;
}

TEST(GpuLinks, DeclaredNvlinkAtTheSpeedOfPcieIsNamed) {
  const Findings findings = judge_links(nvswitch_node(2), survey_of(2, 52));
  ASSERT_EQ(findings.size(), 1u); // all measured pairs agree
  EXPECT_EQ(findings[0].id, "gpu-link-below-declared");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].subject, "GPUs at NV18");
  EXPECT_NE(findings[0].message.find("2 pairs copy below 50%"), std::string::npos);
  EXPECT_NE(findings[0].message.find("GPU0 -> GPU1 at 52.0 GB/s of 477"), std::string::npos)
      << findings[0].message;
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(GpuLinks, WhatIsDeclaredIsReachedOrNotKnown) {
  EXPECT_EQ(judge_links(nvswitch_node(4), survey_of(4, 394)), Findings{});
  EXPECT_EQ(judge_links(nvswitch_node(4), survey_of(4, 239)), Findings{});
  EXPECT_EQ(judge_links(node_with(4, nv18), survey_of(4, 52)), Findings{}) << "no rate is known";
}

TEST(GpuLinks, APairBelowItsSiblingsIsReportedOnce) {
  cuda::LinkSurvey survey = survey_of(4, 394);
  slow_down(pair(survey, 0, 3), 8);
  const Findings findings = judge_links(nvswitch_node(4), survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-link-slow");
}

TEST(GpuLinks, ARefusalIsAnErrorWhereNvlinkJoinsThePair) {
  cuda::LinkSurvey survey = survey_of(2, 400);
  cuda::LinkSample& refused = pair(survey, 1, 0);
  refused.copy_us.clear();
  refused.refused = "cuDeviceCanAccessPeer says no";
  EXPECT_EQ(judge_links(node_with(2, sys), survey), Findings{});
  const Findings findings = judge_links(node_with(2, nv18), survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-p2p-unavailable");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_NE(findings[0].message.find("GPU0 -> GPU1 (NV18): cuDeviceCanAccessPeer says no"),
            std::string::npos)
      << findings[0].message;
}

TEST(GpuLinks, WrongBytesAreAnError) {
  cuda::LinkSurvey survey = survey_of(2, 400);
  pair(survey, 0, 1).wrong = "at offset 8 expected 01, found 00";
  const Findings findings = judge_links(node_with(2, nv18), survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-link-corrupt");
  EXPECT_EQ(findings[0].severity, Severity::error);
  const std::vector<ResultRow> rows = link_rows(node_with(2, nv18), survey);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].verified, Verified::failed);
  EXPECT_EQ(rows[0].status, RowStatus::fail);
}

TEST(GpuLinks, WhatCouldNotBeMeasuredIsSaid) {
  cuda::LinkSurvey survey = survey_of(2, 400);
  for (cuda::LinkSample& sample : survey.samples) {
    sample.copy_us.clear();
    sample.problem = "cannot allocate 32M of memory of GPU 1: out of memory";
  }
  Findings findings = judge_links(node_with(2, nv18), survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-link-unmeasured");
  cuda::LinkSurvey nothing;
  nothing.problem = "no GPU is visible";
  findings = judge_links(node_with(2, nv18), nothing);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "gpu-link-unmeasured");
  EXPECT_NE(findings[0].message.find("no GPU is visible"), std::string::npos);
}

TEST(GpuLinks, AGpuThatTheModelDoesNotKnowKeepsItsAddress) {
  const std::vector<ResultRow> rows = link_rows(node_with(1, nv18), survey_of(2, 400));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].params["source"], "0000:11:00.0");
  EXPECT_EQ(rows[0].params["target"], "GPU0");
  EXPECT_EQ(rows[0].params["declared"], "?");
  EXPECT_EQ(judge_links(node_with(1, nv18), survey_of(2, 400)), Findings{});
}

TEST(GpuLinks, RowsAndTheirMatrix) {
  const Node node = node_with(2, nv18);
  cuda::LinkSurvey survey = survey_of(2, 400);
  pair(survey, 1, 0).copy_us.clear(); // GPU0 -> GPU1
  pair(survey, 1, 0).refused = "cuDeviceCanAccessPeer says no";
  const std::vector<ResultRow> rows = link_rows(node, survey);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].params["source"], "GPU1");
  EXPECT_EQ(rows[0].params["declared"], "NV18");
  EXPECT_EQ(rows[0].verified, Verified::passed);
  EXPECT_DOUBLE_EQ(*rows[0].bandwidth_GBps, 400);
  EXPECT_DOUBLE_EQ(*rows[0].stats->p50, 2.5);
  EXPECT_EQ(rows[1].status, RowStatus::skip);
  EXPECT_EQ(rows[1].reason, "cuDeviceCanAccessPeer says no");
  EXPECT_EQ(links_text(rows, {}), "copies [GB/s], from   GPU0  GPU1\n"
                                  "GPU0                     X     -\n"
                                  "GPU1                 400.0     X\n");
  EXPECT_EQ(results_text(rows, {}), "");
}

TEST(GpuLinks, TheChildsResultIsReturned) {
  cuda::LinkSurvey survey = survey_of(3, 400);
  survey.samples[1].refused = "no \"peer\"\n";
  survey.samples[2].problem = "lost";
  survey.samples[3].wrong = "at offset 0";
  const cuda::LinkSurvey back = doctor::parse_link_survey(doctor::to_text(survey));
  EXPECT_EQ(back.problem, "");
  EXPECT_EQ(back.gpus, survey.gpus);
  EXPECT_EQ(back.copy_bytes, survey.copy_bytes);
  ASSERT_EQ(back.samples.size(), survey.samples.size());
  EXPECT_EQ(doctor::to_text(back), doctor::to_text(survey));
  for (const char* text : {"", "[]", "{}", "[\"\",[],1,[[0,0,\"\",\"\",[],\"\"]]]", "[1,2,3,4]"})
    EXPECT_NE(doctor::parse_link_survey(text).problem, "") << text;
}

} // namespace
} // namespace shmemctl
