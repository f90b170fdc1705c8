#!/bin/bash
# Static analysis of the C sources with cppcheck: real defects only, no style.
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(find src -name '*.c' -not -path '*/generated/*')
[ -n "$files" ] || exit 0
# Suppressed: what cppcheck 2.10 gets wrong about C11 (compound literals, hexadecimal floats, a pointer's own
# bytes copied) -- internalAstError, unknownEvaluationOrder, incorrectLogicOperator, pointerSize.
# nullPointer...: functions that end a compilation do not return, which it cannot know.
# shellcheck disable=SC2086
cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -j 2 \
    --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unknownMacro \
    --suppress=internalAstError --suppress=unknownEvaluationOrder --suppress=incorrectLogicOperator \
    --suppress=pointerSize --suppress=invalidPointerCast --suppress=uninitvar:src/array/select.c --suppress=arrayIndexOutOfBoundsCond --suppress=memleak:src/grad/tape.c --suppress=nullPointerRedundantCheck:src/graph/fuse.c --suppress=nullPointerArithmeticRedundantCheck:src/ir/parse.c --suppress=nullPointerArithmeticRedundantCheck:src/frontend/cuda/lex.c --suppress=nullPointerRedundantCheck:src/frontend/cuda/expression.c --suppress=shiftTooManyBitsSigned:src/backend/vm/kernels_int.c --suppress=shiftTooManyBitsSigned:src/backend/vm/scalars.def --suppress=legacyUninitvar:src/array/sort.c \
    '-DPy_RETURN_NONE=return Py_None' '-DPy_RETURN_TRUE=return Py_True' '-DPy_RETURN_FALSE=return Py_False' \
    '-DPy_RETURN_NOTIMPLEMENTED=return Py_NotImplemented' \
    --max-configs=1 -DSIMT_ISA_NAME=generic -D__x86_64__=1 -D_GNU_SOURCE -D__GNUC__=12 -Isrc -Iinclude -I. $files
