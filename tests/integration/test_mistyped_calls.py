"""Calls that are slightly wrong: each is answered with the cause, and with the nearest one that is right."""
import pathlib
import tempfile
import unittest

from support import DATA, CliTest, run

NODE = str(DATA / "nccl" / "hgx-8gpu-8nic.xml")

# Per kind of mistake: what is typed, what the error line says, what the fix line says.
CALLS = {
    "no such subcommand": (
        ("tpo", "unknown subcommand tpo", "did you mean topo?"),
        ("topology", "unknown subcommand topology", "did you mean topo?"),
        ("TOPO", "unknown subcommand TOPO", "did you mean topo?"),
        ("chek", "unknown subcommand chek", "did you mean check?"),
        ("docter --verbose", "unknown subcommand docter", "did you mean doctor?"),
        ("bring-up", "unknown subcommand bring-up", "did you mean bringup?"),
        ("benchmark put", "unknown subcommand benchmark", "did you mean bench?"),
        ("hot", "unknown subcommand hot", "did you mean hotspots?"),
        ("simulate --nodes 4", "unknown subcommand simulate", "did you mean sim?"),
        ("latency", "unknown subcommand latency", "did you mean bench?"),
        ("counters", "unknown subcommand counters", "did you mean hotspots?"),
        ("put -b 8", "unknown subcommand put", "did you mean bench put?"),
        ("html r.json", "unknown subcommand html", "did you mean report html?"),
        ("compare a.json b.json", "unknown subcommand compare", "did you mean report diff?"),
        ("report shwo r.json", "report: unknown subcommand shwo", "did you mean show?"),
        ("report valid r.json", "report: unknown subcommand valid", "did you mean validate?"),
        ("report junti r.json", "report: unknown subcommand junti", "did you mean junit?"),
        ("help tpo", "unknown subcommand tpo", "did you mean topo?"),
        ("tpo --help", "unknown subcommand tpo", "did you mean topo?"),
    ),
    "no subcommand, or two": (
        ("", "shmemctl: no subcommand given", "write one of check, topo, doctor"),
        ("report", "shmemctl report: no subcommand given", "write one of show, validate, diff"),
        ("topo doctor", "shmemctl topo: unexpected argument doctor", "one call takes one subcommand"),
        ("topo help", "shmemctl topo: unexpected argument help", "did you mean shmemctl help topo?"),
    ),
    "no such option": (
        ("topo --form x.xml", "shmemctl topo: unknown option --form", "did you mean --from?"),
        ("topo --polcy optimal", "shmemctl topo: unknown option --polcy", "did you mean --policy?"),
        ("topo --jason x.json", "unknown option --jason", "did you mean --json?"),
        ("topo -json x.json", "unknown option", "did you mean --json?"),
        ("topo --hca_list mlx5_0", "unknown option --hca_list", "did you mean --hca-list?"),
        ("topo --NVSHMEM_HCA_LIST=mlx5_0", "unknown option --NVSHMEM_HCA_LIST", "did you mean --hca-list?"),
        ("topo --hca mlx5_0", "unknown option --hca", "did you mean --hca-list, --hca-pe-mapping or --hca-prefix?"),
        ("topo --no-color", "unknown option --no-color", "did you mean --color never?"),
        ("topo --output t.json", "unknown option --output", "did you mean --json?"),
        ("topo --iters 5", "shmemctl topo: unknown option --iters", "--iters is an option of bench, moe"),
        ("--iters 5 bench put", "unknown option --iters", "--iters is an option of shmemctl bench: write it after bench"),
        ("moe --num-token 64", "shmemctl moe: unknown option --num-token", "did you mean --num-tokens?"),
        ("moe --topk 4", "shmemctl moe: unknown option --topk", "--num-topk"),
        ("bench put --min 8", "unknown option --min", "did you mean --min-bytes?"),
        ("bench put --bidirectional", "unknown option --bidirectional", "did you mean --bidir?"),
        ("bench put --verify", "unknown option --verify", "--no-verify"),
        ("bench put --iterations 5", "unknown option --iterations", "did you mean --iters?"),
        ("bench put --gid-index 3", "unknown option --gid-index", "did you mean --ib-gid-index?"),
        ("bench put -S 3", "unknown option -S", "did you mean --ib-sl?"),
        ("bench put -s 4K", "unknown option -s", "did you mean --min-bytes?"),
        ("--polcy optimal", "shmemctl: unknown option --polcy", "did you mean --policy, of check, topo"),
        ("--jsn x.json tpo", "shmemctl: unknown option --jsn", "did you mean --json?"),
        ("bench put -z", "unknown option -z", "shmemctl bench --help lists all options"),
        ("sim --nodse 4", "shmemctl sim: unknown option --nodse", "did you mean --nodes?"),
        ("hotspots --wacth 1", "unknown option --wacth", "did you mean --watch?"),
        ("doctor --olny rdma", "unknown option --olny", "did you mean --only?"),
        ("report diff a b --alhpa 1%", "report diff: unknown option --alhpa", "did you mean --alpha?"),
        ("--hepl", "unknown option --hepl", "did you mean --help?"),
        ("--verison", "unknown option --verison", "did you mean --version?"),
        ("run --np 2 bench put", "shmemctl run: unknown option --np", "--pes"),
    ),
    "no such value": (
        (f"topo --from {NODE} --policy optimum", "--policy: unknown value optimum", "did you mean optimal?"),
        ("topo --world deepepht", "--world: unknown value deepepht", "did you mean deepep-ht?"),
        ("topo --color=purple", "--color: unknown value purple", "use one of auto, always, never"),
        ("topo --log-level warn", "--log-level: unknown value warn", "did you mean warning?"),
        ("topo --format hwloc", "--format: unknown value hwloc", "did you mean hwloc-xml?"),
        ("bench put --traffic alltoall", "--traffic: unknown value alltoall", "did you mean all-to-all?"),
        ("moe --dtype fp9", "--dtype: unknown value fp9", "did you mean fp8?"),
        ("moe --backend cuda", "--backend: unknown value cuda", "use one of host, gpu"),
        (f"sim --from {NODE} --routing zpif", "zpif", "zipf"),
        (f"sim --from {NODE} --kill-nic mlx5_33", "--kill-nic mlx5_33: no NIC mlx5_33", "did you mean mlx5_3?"),
        ("sim --fabric fattree", "--fabric: unknown value fattree", "did you mean fat-tree?"),
        ("doctor --only rmda", '--only: unknown check or group "rmda"', "did you mean rdma?"),
        ("doctor --skip memlok", '--skip: unknown check or group "memlok"', "did you mean memlock?"),
        ("completion bsh", "unknown value bsh", "did you mean bash?"),
        ("bench putt", 'unknown case "putt"', "did you mean put?"),
        ("topo --nvshmem-version banana", "banana: not a version", "such as 3.4.5"),
        (f"topo --from {NODE} --gpus 0,99", "\"99\" is not a GPU of this node", "pass indices that shmemctl topo shows"),
    ),
    "not a number, or out of range": (
        ("bench put --iters abc", "--iters: abc is not an integer from 1 to", "pass an integer from 1 to"),
        ("bench put -n 1e3", "--iters: 1e3 is not an integer", "did you mean --iters 1000?"),
        ("bench put -n 4K", "--iters: 4K is not an integer", "did you mean --iters 4096?"),
        ("bench put -n 0", "--iters: 0 is not in range 1 to", "use the nearest legal value: --iters 1"),
        ("bench put --ctas 0", "--ctas: 0 is not in range", "use the nearest legal value: --ctas 1"),
        ("bench put -D 10sec", "--duration: 10sec is not a number", "pass a number from 0.001 to 86400"),
        ("bench put -D 48h", "--duration: 172800 is not in range", "--duration 86400"),
        ("bench put -b 12Q", "--min-bytes 12Q is not a size", "such as 8, 4K, 2M or 1G"),
        ("sim --nodes abc", "--nodes: abc is not an integer", "pass an integer from 1 to"),
        ("hotspots --watch 0", "--watch: 0 is not in range 0.05 to 86400", "nearest legal value: --watch 0.05"),
        ("topo --pes-per-node 9999", "--pes-per-node: 9999 is not in range 0 to 4096", "--pes-per-node 4096"),
        ("topo --timeout -5", "--timeout: -5 is not in range 1 to 86400", "--timeout 1"),
        ("topo --timeout 5x", "--timeout: 5x is not a number", "from 1 to 86400"),
        ("run -n 0 bench put", "--pes: 0 is not in range 1 to 4096", "--pes 1"),
        ("moe --hidden 100", "must be a multiple of 8", "96 or 104"),
    ),
    "something is missing": (
        ("topo --from", "--from: no value given", "write --from FILE"),
        ("topo --json=", "--json: no value given", "write --json FILE"),
        ("topo --world", "--world: no value given", "one of node, deepep-ht, deepep-ll"),
        ("--csv", "--csv: no value given", "write --csv FILE"),
        ("report show", "shmemctl report show: no FILE given", "write shmemctl report show FILE"),
        ("report diff a.json", "shmemctl report diff: no NEW given", "write shmemctl report diff"),
        ("report html", "shmemctl report html: no FILES... given", "write shmemctl report html FILES..."),
        ("completion", "shmemctl completion: no SHELL given", "write shmemctl completion"),
        ("bench", "bench: no case given", "shmemctl bench --list shows all cases"),
        ("run", "shmemctl run: no number of PEs given", "write shmemctl run --pes N CMD ARGS..."),
        ("run bench put -n 2", "shmemctl run: no number of PEs given", "write -n before the command"),
        ("run 4 bench put", "shmemctl run: no number of PEs given", "did you mean shmemctl run -n 4 bench put?"),
        ("run -n 2", "run: no command given", "shmemctl run -n 4 CMD ARGS..."),
        ("hotspots --during", "--during needs a command", "hotspots --during CMD ARGS..."),
    ),
    "too much": (
        (f"topo {NODE}", f"shmemctl topo: unexpected argument {NODE}", f"did you mean --from {NODE}?"),
        ("topo optimal", "shmemctl topo: unexpected argument optimal", "did you mean --policy optimal?"),
        ("topo verbose", "shmemctl topo: unexpected argument verbose", "did you mean --verbose?"),
        ("env HCA_LIST", "shmemctl env: unexpected argument HCA_LIST", "omit it"),
        ("bench put -D 1 -n 5", "cannot be given together", "omit --"),
        ("bench put --seed 1 --seed 2", "--seed: given 2 times", "pass it once"),
        ("bench put --bidir=maybe", "--bidir: takes no value", "write --bidir alone"),
    ),
    "another launcher's habits": (
        ("run -np 4 bench put", "unknown option -np", "did you mean -n?"),
        ("run -v -n 2 bench put", "run: -v is not an option of run", "write options of the command after it"),
        ("run -n 2 benhc put", "benhc: cannot run: no such program", "did you mean bench"),
        ("run -n 2 --json x.json", "--json is not an option of run", "write options of the command after it"),
        ("--json x.json run -n 2 bench put", "--json is an option of the command", "write it after the command"),
        ("hotspots --during bnech put", "bnech: cannot run: no such program", "did you mean bench"),
    ),
}


class MistypedCalls(CliTest):
    def test_each_gets_its_cause_and_the_nearest_right_one(self):
        calls = 0
        for kind, rows in CALLS.items():
            for call, cause, nearest in rows:
                calls += 1
                with self.subTest(kind=kind, call=call):
                    error, fix = self.assert_refused(run(*call.split())).splitlines()
                    self.assertIn(cause, error)
                    self.assertIn(nearest, fix)
        self.assertGreaterEqual(calls, 71)

    def test_what_is_suggested_is_right(self):
        """Of suggestions that are whole: the call that they lead to is not refused for the same."""
        for call, right in (("tpo", "topo"), ("help tpo", "help topo"), (f"topo {NODE}", f"topo --from {NODE}"),
                            (f"topo --from {NODE} --policy optimum", f"topo --from {NODE} --policy optimal"),
                            ("topo help", "help topo"), ("run -np 1 env", "run -n 1 env")):
            with self.subTest(call=call):
                self.assertEqual(run(*call.split())[0], 2)
                code, _, err = run(*right.split())
                self.assertIn(code, (0, 1), err)

    def test_a_missing_file_gets_the_nearest_name_beside_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "put.json").write_text("{}")
            error, fix = self.assert_refused(run("report", "show", folder / "pt.json")).splitlines()
            self.assertIn("cannot read: No such file or directory", error)
            self.assertIn(f"did you mean {folder}/put.json?", fix)
            self.assertNotIn("did you mean", self.assert_refused(run("report", "show", folder / "zzzzzzzz.xyz")))

    def test_a_release_that_does_not_exist_yet_is_said(self):
        for call in ("topo", f"topo --from {NODE}", f"sim --from {NODE} --steps 1"):
            with self.subTest(call=call):
                self.assertIn("NVSHMEM 9.9.9 is newer than any release whose rules are known",
                              run(*call.split(), "--nvshmem-version", "9.9.9")[1])

    def test_a_mistyped_variable_is_warned_of_once(self):
        env = {"SHMEMCTL_POLCY": "optimal"}
        warning = "SHMEMCTL_POLCY is not an option of shmemctl"
        for call in (f"topo --from {NODE}", "doctor --only memlock", "run -n 2 env",
                     f"run -n 2 topo --from {NODE}", "report schema", "run -n 2 true"):
            with self.subTest(call=call):
                err = run(*call.split(), env=env)[2]
                self.assertEqual(err.count(warning), 1, err)
                self.assertIn("did you mean SHMEMCTL_POLICY?", err)
        code, out, err = run("env", env=env)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(warning, out)
        self.assertEqual(run("--quiet", "topo", "--from", NODE, env=env)[2], "")


if __name__ == "__main__":
    unittest.main()
