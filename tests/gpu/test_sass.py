# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine code of the kernels: no local memory, no spills, few registers, accesses as wide as they shall be."""

from __future__ import annotations

import pytest

from shlo_disc.errors import DiscError
from shlo_disc.lowering.codegen.cuda_toolkit import find_libdevice
from tests.gpu.sass import (
    REGISTER_SLACK,
    TABLE,
    Kernel,
    Row,
    Usage,
    differences,
    find_nvdisasm,
    kernels_of,
    parse_machine,
    parse_usage,
    read_table,
    report,
    row_of,
    width_of,
    write_table,
)
from tests.ir.gpu_cases import CASES

QUICK = ("embedding", "softmax")

ASSEMBLER = """\
ptxas info    : 24 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 49152 bytes smem, 560 bytes cmem[0]
ptxas info    : Compile time = 3.125 ms
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""

DISASSEMBLER = """\
\t.target\tsm_90a

//--------------------- .text.first --------------------------
\t.section\t.text.first,"ax",@progbits
        .global         first
first:
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/               @P1 LDG.E.U16 R8, desc[UR4][R2.64+0x10] ;
        /*0030*/             @!UP2 LDL.64 R10, [R1+0x8] ;
        /*0040*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0050*/                   SHFL.DOWN PT, R5, R5, 0x10, 0x1f ;
        /*0060*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
        /*0070*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0080*/                   WARPGROUP.ARRIVE ;
        /*0090*/                   UTMALDG.2D [UR16], [UR4] ;
        /*00a0*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_u64) ;
        /*00b0*/               @P0 CALL.REL.NOINC `($__internal_1_$__cuda_sm20_rem_s64) ;
        /*00c0*/                   CALL.REL.NOINC `($__internal_2_$__cuda_sm3x_div_rn_noftz_f32_slowpath) ;
        /*00d0*/                   STG.E.64 desc[UR4][R2.64], R4 ;
$__internal_0_$__cuda_sm20_div_u64:
        /*00e0*/                   I2F.U64.RP R7, R8 ;
        /*00f0*/                   RET.REL.NODEC R6 `(first) ;

//--------------------- .text.second --------------------------
\t.section\t.text.second,"ax",@progbits
second:
.text.second:
        /*0000*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0010*/                   EXIT ;
"""


def is_missing() -> str:
    """The tool that is not here, and how it is installed; empty when all are."""
    try:
        find_libdevice()
        find_nvdisasm()
    except DiscError as error:
        return str(error)
    return ""


MISSING = is_missing()
needs_tools = pytest.mark.skipif(bool(MISSING), reason=MISSING or "all tools are here")


def test_what_the_assembler_says() -> None:
    assert parse_usage(ASSEMBLER) == {"first": Usage(168, 49152, 20), "second": Usage(12, 0, 0)}


def test_what_the_disassembler_says() -> None:
    found = parse_machine(DISASSEMBLER)
    assert list(found) == ["first", "second"]
    first, second = found.values()
    assert first.opcodes.total() == 16 and second.opcodes == {"STG.E": 1, "EXIT": 1}
    assert first.widths("LDG") == (16, 128) and first.widths("STG") == (64,) and second.widths("LDG") == ()
    assert first.count("LDL", "STL") == 1 and first.count("BAR") == first.count("SHFL") == first.count("HGMMA") == 1
    assert first.count("WARPGROUP") == 2 and first.count("WARPGROUP.DEPBAR") == 1 and first.count("LD") == 0
    assert first.divisions == 2 and first.calls.total() == 3, "a division of f32 is none of 64 bits"
    assert second.divisions == 0


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [("LDG.E", 32), ("LDG.E.CONSTANT", 32), ("LDG.E.S8", 8), ("STG.E.U16", 16), ("LDG.E.64", 64), ("STS.128", 128)],
)
def test_width_of_an_access(opcode: str, bits: int) -> None:
    assert width_of(opcode) == bits


ROW = Row("case", "kernel", "sm_90", 40, "32+128", "128", 0, 0, 1, 1, "HGMMA+UTMALDG")


def test_a_kernel_as_the_table_has_it() -> None:
    assert differences(ROW, ROW) == []
    better = ROW._replace(registers=16, divisions=0, waits=0, uses="HGMMA+HMMA+UTMALDG")
    assert differences(ROW, better) == []
    assert differences(ROW, ROW._replace(registers=40 + REGISTER_SLACK)) == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"registers": 49}, "registers: 49, the table has 40"),
        ({"loads": "32"}, "loads: 32, the table has 32+128"),
        ({"stores": "32+128"}, "stores: 32+128, the table has 128"),
        ({"local": 1}, "local: 1, the table has 0"),
        ({"spills": 4}, "spills: 4, the table has 0"),
        ({"divisions": 2}, "divisions: 2, the table has 1"),
        ({"waits": 2}, "waits: 2, the table has 1"),
        ({"uses": "UTMALDG"}, "no HGMMA"),
        ({"uses": "-"}, "no HGMMA"),
    ],
)
def test_a_kernel_that_is_worse(changed: dict[str, object], text: str) -> None:
    assert differences(ROW, ROW._replace(**changed))[0] == text


def test_the_table_reads_what_it_writes() -> None:
    rows = [ROW, ROW._replace(kernel="another", loads="-", uses="-")]
    assert read_table(write_table(rows)) == sorted(rows)


def test_the_table_has_all_cases_and_no_kernel_with_local_memory() -> None:
    rows = read_table(TABLE.read_text())
    assert {row.case for row in rows} == set(CASES), "run: python -m tests.gpu.sass --update"
    assert [row.key for row in rows if row.local or row.spills] == []


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in sorted(CASES)])
def test_the_kernels_of_a_case(name: str) -> None:
    expected = {row.key: row for row in read_table(TABLE.read_text()) if row.case == name}
    found = {row.key: row for row in map(row_of, kernels_of(name))}
    assert found.keys() == expected.keys(), "run: python -m tests.gpu.sass --update"
    wrong = {key: differences(expected[key], row) for key, row in found.items()}
    assert not any(wrong.values()), wrong


LOOPS = """\
\t.section\t.text.nested,"ax",@progbits
.text.nested:
.L_x_1:
        /*0000*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0010*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0020*/                   FADD R4, R4, R4 ;
        /*0030*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0040*/               @P1 BRA `(.L_x_2) ;
.L_x_3:
        /*0050*/               @P2 BRA P3, `(.L_x_1) ;
        /*0060*/                   EXIT ;
.L_x_4:
        /*0070*/                   BRA `(.L_x_4) ;
"""


def test_loops_without_loops_inside_are_counted() -> None:
    (machine,) = parse_machine(LOOPS).values()
    assert machine.loops == [{"FADD": 1, "STG.E": 1, "BRA": 1}]


@needs_tools
@pytest.mark.ptxas
def test_a_softmax_divides_by_a_reciprocal() -> None:
    """At most six instructions divide and write an element that was kept, without a subroutine."""
    for kernel in kernels_of("softmax"):
        writing = [loop for loop in kernel.machine.loops if loop["LDS.128"] and loop["STG.E.128"]]
        assert len(writing) == 1, "that of batches; the rest of the runs has no loop"
        assert min(loop.total() / (4 * loop["STG.E.128"]) for loop in writing) <= 6
        assert not [name for name in kernel.machine.calls if "_div_" in name]


def test_a_report_is_readable() -> None:
    kernel = Kernel("case", "first", "sm_90a", parse_usage(ASSEMBLER)["first"], parse_machine(DISASSEMBLER)["first"])
    lines = report(kernel).splitlines()
    assert lines[:2] == ["first (sm_90a)", "  168 registers, 49152 bytes of shared memory, 20 bytes spilled"]
    assert "1 HGMMA" in lines[2] and "LDG 16+128 bits, STG 64 bits; 2 divisions of 64 bits" in lines[3]
    assert lines[4] == "  calls $__internal_0_$__cuda_sm20_div_u64: 1"
    assert row_of(kernel)[3:] == (168, "16+128", "64", 1, 20, 2, 1, "HGMMA+UTMALDG")
