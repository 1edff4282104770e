// `shmemctl topo`: the topology, the NIC that each PE will use, and misconfigurations.
#include <iostream>
#include <utility>

#include "cli/node_job.h"
#include "src/base/log.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

struct TopoFlags {
  std::string dump;
  bool compare_versions = false;
  bool measure = false;
};

/// Rejects flags whose output --dump does not write.
void refuse_idle_flags(const TopoFlags& flags, const Context& context) {
  if (flags.dump.empty())
    return;
  const bool report = flags.dump == "report";
  for (const auto& [flag, idle] :
       {std::pair("--measure", !report && flags.measure),
        std::pair("--compare-versions", !report && flags.compare_versions),
        std::pair("--json", !context.json_path.empty()),
        std::pair("--csv", !report && !context.csv_path.empty())})
    if (idle)
      throw Error(ExitCode::usage, flag, "",
                  report ? "--dump report writes the report to stdout"
                         : "--dump " + flags.dump + " writes the topology only, and no report",
                  "omit it, or omit --dump");
}

/// A dump carries no findings, so what the source lacks is logged on stderr.
ExitCode dump_node(const Node& node, const std::string& format) {
  for (const Finding& finding : check_source(node))
    log(finding.severity == Severity::info ? LogLevel::info : LogLevel::warning, "topo",
        finding.message);
  std::cout << (format == "hwloc-xml" ? write_hwloc_xml(node) : write_nccl_xml(node));
  return ExitCode::ok;
}

} // namespace

void add_topo(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "topo", "Show the topology, the NIC that each PE will use, and misconfigurations");
  command->footer("Examples:\n"
                  "  shmemctl topo\n"
                  "  shmemctl topo --world deepep-ht --enable-nic-pe-mapping\n"
                  "  shmemctl topo --from node.tar.zst\n"
                  "  shmemctl topo --from topo.xml --policy optimal --json topo.json\n"
                  "  nvidia-smi topo -m | shmemctl topo --from - --nvshmem-version 3.4.5");
  auto source_flags = std::make_shared<SourceFlags>();
  auto flags = std::make_shared<TopoFlags>();
  add_source_flags(*command, context, source_flags);
  add_mapping_flags(*command, context);
  command
      ->add_option("--dump", flags->dump,
                   "Write only the topology as XML, or the report, to stdout; --from reads either")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"hwloc-xml", "nccl-xml", "report"}));
  command->add_flag("--compare-versions", flags->compare_versions,
                    "Also map by the rules of every known NVSHMEM release, and show those that "
                    "choose other NICs here (not with --dump of XML)");
  command->add_flag("--measure", flags->measure,
                    "Also measure copies between every pair of GPUs of this machine, in GB/s "
                    "(needs two NVIDIA GPUs; not with --from, --sysroot or --dump of XML)");
  command->callback([&context, source_flags, flags] {
    context.run = [source_flags, flags](Context& run_context) {
      refuse_idle_flags(*flags, run_context);
      if (flags->dump == "report")
        run_context.json_path = "-";
      return with_node_session(
          run_context, source_flags->from.empty() && flags->dump.empty(),
          [&](Session& session, const Options& options) {
            const NodeSource source = session.load(*source_flags);
            if (!flags->dump.empty() && flags->dump != "report")
              return dump_node(source.node, flags->dump);
            run_topo(session, options, source);
            add_redirects(session, source, run_context.environment);
            if (flags->measure && !run_gpu_links(session, source))
              throw Error(
                  ExitCode::usage, "--measure", "copy between GPUs",
                  "this machine has fewer than two NVIDIA GPUs, or the topology was recorded",
                  "omit --measure, or run it on a machine with two GPUs, without --from and "
                  "--sysroot");
            if (flags->compare_versions)
              session.report().mapping["compare_versions"] =
                  compare_versions_json(source.node, mapping_request(options, source));
            return session.finish();
          });
    };
  });
}

} // namespace shmemctl
