// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A product has the batch sizes, then what is left of the left operand, then of the right one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: stablehlo.dot_general {{.*}} -> tensor<?x?x?xf32, [@b, @m, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @m, @k]>, %y: tensor<?x?x?xf32, [@k, @b, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0]
    : (tensor<?x?x?xf32, [@b, @m, @k]>, tensor<?x?x?xf32, [@k, @b, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Batch sizes are equal, and so are contracted ones: a number on one side is the size on the other.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK-NOT: sym_name = "k"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x8xf32, [@c, @m, 8]>, %{{.*}}: tensor<?x8x?xf32, [@c, 8, @n]>) -> tensor<?x?x?xf32, [@c, @m, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @k]>, %y: tensor<?x8x?xf32, [@d, 8, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<?x?x?xf32, [@c, @m, @k]>, tensor<?x8x?xf32, [@d, 8, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Contracted sizes that are multiples of different numbers may still agree: the relation is checked at each call.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {divisor = 2 : i64, min = 0 : i64, name = "m"}
// CHECK-NEXT: "disc.symbol"() {divisor = 3 : i64, min = 0 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.dot_general at line {{[0-9]+}}", relation = "2*n == 3*m"}
// CHECK: func.func @main
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %y: tensor<?xf32, [@"3*m"]>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"3*m"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// An even contracted size never is an odd one.
// CHECK: error: stablehlo.dot_general at line {{[0-9]+}}: the sizes 2*n and 2*m + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"2*n"]>, %y: tensor<?xf32, [@"2*m + 1"]>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<?xf32, [@"2*n"]>, tensor<?xf32, [@"2*m + 1"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Batch sizes that never agree.
// CHECK: error: stablehlo.dot_general at line {{[0-9]+}}: the sizes b and b + 2 must be equal and never are
func.func @main(%x: tensor<?x4xf32, [@b, 4]>, %y: tensor<?x4xf32, [@"b + 2", 4]>) -> tensor<?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<?x4xf32, [@b, 4]>, tensor<?x4xf32, [@"b + 2", 4]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A product of two matrices: the inner sizes are one size.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "k"
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@m, @j]>, %{{.*}}: tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK: stablehlo.dot {{.*}} -> tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A matrix times a vector.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.dot {{.*}} -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?xf32, [@k]>) -> tensor<?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@k]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Inner sizes that never agree.
// CHECK: error: stablehlo.dot at line {{[0-9]+}}: the sizes k and k + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@k]>, %y: tensor<?xf32, [@"k + 1"]>) -> tensor<f32> {
  %0 = stablehlo.dot %x, %y : (tensor<?xf32, [@k]>, tensor<?xf32, [@"k + 1"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A letter of an einsum is one size wherever it stands: here the batch and the contracted axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x7xf32, [@c, @m, 7]>, %{{.*}}: tensor<7x?x?xf32, [7, @c, @n]>) -> tensor<?x?x?xf32, [@n, @c, @m]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @k]>, %y: tensor<7x?x?xf32, [7, @d, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "bij,jbk->kbi"
    : (tensor<?x?x?xf32, [@c, @m, @k]>, tensor<7x?x?xf32, [7, @d, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A letter of an einsum whose sizes never agree.
// CHECK: error: stablehlo.einsum at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@m, @n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "ij,j->i" : (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An einsum of which a letter stands twice in an operand is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK: stablehlo.einsum {{.*}} an einsum of 'ii,j->j' has no lowering
func.func @main(%x: tensor<?x?xf32, [@n, @n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "ii,j->j" : (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An einsum of one operand orders its axes anew and sums over the letters that the result lacks.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.unary_einsum{{.*}} -> tensor<?x?xf32, [@p, @m]>
func.func @main(%x: tensor<?x?x?xf32, [@m, @n, @p]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ijk->ki"}> : (tensor<?x?x?xf32, [@m, @n, @p]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// The sizes that a static result of an einsum states are those of the letters.
// CHECK: error: stablehlo.unary_einsum at line {{[0-9]+}}: the sizes 2*n and 5 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@"2*n", @m]>) -> tensor<5xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ij->i"}> : (tensor<?x?xf32, [@"2*n", @m]>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A factor of a symmetric matrix has its shape, and the matrix is square, in each batch.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "m"
// CHECK: stablehlo.cholesky %{{.*}}, lower = true : tensor<?x?x?xf32, [@b, @k, @k]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @m, @k]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.cholesky %x, lower = true : (tensor<?x?x?xf32, [@b, @m, @k]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A matrix that is never square has no such factor.
// CHECK: error: stablehlo.cholesky at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@n, @"n + 1"]>) -> tensor<?x?xf32> {
  %0 = stablehlo.cholesky %x, lower = true : (tensor<?x?xf32, [@n, @"n + 1"]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A system of equations: the matrix is square, and as large as what is right of it has rows; the result has the latter's shape.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@b, @j, @j]>, %{{.*}}: tensor<?x?x?xf32, [@b, @j, @k]>) -> tensor<?x?x?xf32, [@b, @j, @k]>
// CHECK: "stablehlo.triangular_solve"
func.func @main(%a: tensor<?x?x?xf32, [@c, @n, @m]>, %b: tensor<?x?x?xf32, [@b, @j, @k]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<?x?x?xf32, [@c, @n, @m]>, tensor<?x?x?xf32, [@b, @j, @k]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// With the matrix on the right side, its size is the number of columns.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@k, @k]>, %{{.*}}: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32, [@j, @k]>
func.func @main(%a: tensor<?x?xf32, [@n, @m]>, %b: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<?x?xf32, [@n, @m]>, tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A system whose matrix never is square.
// CHECK: error: stablehlo.triangular_solve at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@n, @"n + 1"]>, %b: tensor<?x?xf32, [@n, @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<?x?xf32, [@n, @"n + 1"]>, tensor<?x?xf32, [@n, @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A system of another number of equations than what is right of it.
// CHECK: error: stablehlo.triangular_solve at line {{[0-9]+}}: the sizes n and n + 2 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@n, @n]>, %b: tensor<?x?xf32, [@"n + 2", @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<?x?xf32, [@n, @n]>, tensor<?x?xf32, [@"n + 2", @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Systems in batches that never agree.
// CHECK: error: stablehlo.triangular_solve at line {{[0-9]+}}: the sizes b and b + 1 must be equal and never are
func.func @main(%a: tensor<?x4x4xf32, [@b, 4, 4]>, %b: tensor<?x4x2xf32, [@"b + 1", 4, 2]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<?x4x4xf32, [@b, 4, 4]>, tensor<?x4x2xf32, [@"b + 1", 4, 2]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A QR factorisation with exchanged columns: one factor for each of the fewer of rows and columns.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "n"
// CHECK: stablehlo.custom_call @lapack_sgeqp3_ffi({{.*}} -> (tensor<?x?xf32, [@m, @k]>, tensor<?xi32, [@k]>, tensor<?xf32, [@"min(k, m)"]>)
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %p: tensor<?xi32, [@k]>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>) {
  %0:3 = stablehlo.custom_call @lapack_sgeqp3_ffi(%a, %p) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?xi32, [@k]>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>
}

// -----

// A QR factorisation whose columns' numbers never are as many as the columns.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %p: tensor<?xi32, [@"n + 1"]>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>) {
  %0:3 = stablehlo.custom_call @lapack_sgeqp3_ffi(%a, %p) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?xi32, [@"n + 1"]>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>
}

// -----

// A QR factorisation, in each batch.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_dgeqrf_ffi({{.*}} -> (tensor<?x?x?xf64, [@b, @m, @n]>, tensor<?x?xf64, [@b, @"min(m, n)"]>)
func.func @main(%a: tensor<?x?x?xf64, [@b, @m, @n]>) -> (tensor<?x?x?xf64>, tensor<?x?xf64>) {
  %0:2 = stablehlo.custom_call @lapack_dgeqrf_ffi(%a) {
    operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
    result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>]}
    : (tensor<?x?x?xf64, [@b, @m, @n]>) -> (tensor<?x?x?xf64>, tensor<?x?xf64>)
  return %0#0, %0#1 : tensor<?x?x?xf64>, tensor<?x?xf64>
}

// -----

// The full singular vectors: two square matrices. (mode A)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_sgesdd_ffi({{.*}} -> (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@"min(m, n)"]>, tensor<?x?xf32, [@m, @m]>, tensor<?x?xf32, [@n, @n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@m, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 65 : ui8}}
    : (tensor<?x?xf32, [@m, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>
}

// -----

// As many singular vectors as there are singular values. (mode S)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_cgesvd_ffi({{.*}} -> (tensor<?x?xcomplex<f32>, [@m, @n]>, tensor<?xf32, [@"min(m, n)"]>, tensor<?x?xcomplex<f32>, [@m, @"min(m, n)"]>, tensor<?x?xcomplex<f32>, [@"min(m, n)", @n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xcomplex<f32>, [@m, @n]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_cgesvd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 83 : ui8}}
    : (tensor<?x?xcomplex<f32>, [@m, @n]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>
}

// -----

// Singular vectors that nobody asked for have the sizes that the program states. (mode N)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_sgesvd_ffi({{.*}} -> (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@"min(m, n)"]>, tensor<7x7xf32>, tensor<0x0xf32>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@m, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<0x0xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgesvd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 78 : ui8}}
    : (tensor<?x?xf32, [@m, @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<0x0xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<0x0xf32>, tensor<i32>
}

// -----

// Singular vectors of a size that they never have.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes 2*m and 7 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@"2*m", @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<?x?xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 65 : ui8}}
    : (tensor<?x?xf32, [@"2*m", @n]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xf32>, tensor<?xf32>, tensor<7x7xf32>, tensor<?x?xf32>, tensor<i32>
}

// -----

// A Schur decomposition of a square matrix; real eigenvalues come in two parts.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: stablehlo.custom_call @lapack_sgees_ffi({{.*}} -> (tensor<?x?xf32, [@n, @n]>, tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<i32>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>, tensor<i32>) {
  %0:6 = stablehlo.custom_call @lapack_sgees_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 86 : ui8, sort = 78 : ui8}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>, tensor<i32>
}

// -----

// A Schur decomposition of a matrix that never is square.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%a: tensor<?x?xcomplex<f64>, [@n, @"n + 1"]>) -> (tensor<?x?xcomplex<f64>>, tensor<?x?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<i32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_zgees_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 86 : ui8, sort = 78 : ui8}}
    : (tensor<?x?xcomplex<f64>, [@n, @"n + 1"]>) -> (tensor<?x?xcomplex<f64>>, tensor<?x?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<i32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xcomplex<f64>>, tensor<?x?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<i32>, tensor<i32>
}

// -----

// Eigenvalues and eigenvectors of a square matrix, complex even where the matrix is real.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: stablehlo.custom_call @lapack_sgeev_ffi({{.*}} -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgeev_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {compute_left = 86 : ui8, compute_right = 86 : ui8}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?xf32>, tensor<?xf32>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>
}

// -----

// Eigenvalues of a complex matrix.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_cgeev_ffi({{.*}} -> (tensor<?xcomplex<f32>, [@n]>, tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xcomplex<f32>, [@n, @n]>) -> (tensor<?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>) {
  %0:4 = stablehlo.custom_call @lapack_cgeev_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {compute_left = 78 : ui8, compute_right = 86 : ui8}}
    : (tensor<?x?xcomplex<f32>, [@n, @n]>) -> (tensor<?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<i32>
}

// -----

// A Hessenberg form has one reflection less than rows, of which there is at least one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 1 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n - 1 >= 0"}
// CHECK: stablehlo.custom_call @lapack_sgehrd_ffi({{.*}} -> (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@"n - 1"]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_sgehrd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {low = 1 : i32, high = 4 : i32}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<i32>
}

// -----

// An LU factorisation, in each batch: a pivot for each of the fewer of rows and columns, and one number for each matrix.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.custom_call @lapack_sgetrf_ffi({{.*}} -> (tensor<?x?x?xf32, [@b, @m, @n]>, tensor<?x?xi32, [@b, @"min(m, n)"]>, tensor<?xi32, [@b]>)
func.func @main(%a: tensor<?x?x?xf32, [@b, @m, @n]>) -> (tensor<?x?x?xf32>, tensor<?x?xi32>, tensor<?xi32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {
    operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
    result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>]}
    : (tensor<?x?x?xf32, [@b, @m, @n]>) -> (tensor<?x?x?xf32>, tensor<?x?xi32>, tensor<?xi32>)
  return %0#0, %0#1, %0#2 : tensor<?x?x?xf32>, tensor<?x?xi32>, tensor<?xi32>
}

// -----

// An LU factorisation with a number of pivots that it never has.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes 2*n and 5 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@"2*n", @"2*n"]>) -> (tensor<?x?xf32>, tensor<5xi32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]}
    : (tensor<?x?xf32, [@"2*n", @"2*n"]>) -> (tensor<?x?xf32>, tensor<5xi32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<5xi32>, tensor<i32>
}

// -----

// A system of three diagonals: all of them have as many elements as the right side has rows.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@[[D:[a-z]]]]>, %{{.*}}: tensor<?xf32, [@[[D]]]>, %{{.*}}: tensor<?xf32, [@[[D]]]>, %{{.*}}: tensor<?x?xf32, [@[[D]], @n]>)
// CHECK: stablehlo.custom_call @lapack_sgtsv_ffi({{.*}} -> (tensor<?xf32, [@[[D]]]>, tensor<?xf32, [@[[D]]]>, tensor<?xf32, [@[[D]]]>, tensor<?x?xf32, [@[[D]], @n]>, tensor<i32>)
func.func @main(%a: tensor<?xf32, [@i]>, %d: tensor<?xf32, [@j]>, %c: tensor<?xf32, [@k]>, %b: tensor<?x?xf32, [@m, @n]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgtsv_ffi(%a, %d, %c, %b) {
    operand_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<?xf32, [@i]>, tensor<?xf32, [@j]>, tensor<?xf32, [@k]>, tensor<?x?xf32, [@m, @n]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>
}

// -----

// Diagonals that never have as many elements as each other.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n and n - 1 must be equal and never are
func.func @main(%a: tensor<?xf32, [@"n - 1"]>, %d: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>, %b: tensor<?x?xf32, [@n, @k]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_sgtsv_ffi(%a, %d, %c, %b) {
    operand_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<?xf32, [@"n - 1"]>, tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<?x?xf32, [@n, @k]>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<i32>
}

// -----

// Eigenvalues of a Hermitian matrix are real, and as many as it has rows.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: stablehlo.custom_call @lapack_cheevd_ffi({{.*}} -> (tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<?xf32, [@n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xcomplex<f32>, [@n, @p]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_cheevd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}}
    : (tensor<?x?xcomplex<f32>, [@n, @p]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<i32>
}

// -----

// Eigenvalues of a symmetric matrix.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: stablehlo.custom_call @lapack_ssyevd_ffi({{.*}} -> (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<i32>
}

// -----

// Three diagonals of a Hermitian matrix: the outer ones and the reflections are one less than rows.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: relation = "n - 1 >= 0"
// CHECK: stablehlo.custom_call @lapack_chetrd_ffi({{.*}} -> (tensor<?x?xcomplex<f32>, [@n, @n]>, tensor<?xf32, [@n]>, tensor<?xf32, [@"n - 1"]>, tensor<?xcomplex<f32>, [@"n - 1"]>, tensor<i32>)
func.func @main(%a: tensor<?x?xcomplex<f32>, [@n, @p]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?xf32>, tensor<?xcomplex<f32>>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_chetrd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xcomplex<f32>, [@n, @p]>) -> (tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?xf32>, tensor<?xcomplex<f32>>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xcomplex<f32>>, tensor<?xf32>, tensor<?xf32>, tensor<?xcomplex<f32>>, tensor<i32>
}

// -----

// Three diagonals of a symmetric matrix.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: relation = "n - 1 >= 0"
// CHECK: stablehlo.custom_call @lapack_ssytrd_ffi({{.*}} -> (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@n]>, tensor<?xf32, [@"n - 1"]>, tensor<?xf32, [@"n - 1"]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_ssytrd_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<i32>
}

// -----

// The orthogonal matrix of reflections: no more columns than rows, and no more reflections than columns.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: relation = "m >= n"
// CHECK: relation = "n >= k"
// CHECK: stablehlo.custom_call @lapack_sorgqr_ffi({{.*}} -> tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %tau: tensor<?xf32, [@k]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_sorgqr_ffi(%a, %tau) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>]}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// The unitary matrix of reflections.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: relation = "m >= n"
// CHECK: relation = "n >= k"
// CHECK: stablehlo.custom_call @lapack_cungqr_ffi({{.*}} -> tensor<?x?xcomplex<f32>, [@m, @n]>
func.func @main(%a: tensor<?x?xcomplex<f32>, [@m, @n]>, %tau: tensor<?xcomplex<f32>, [@k]>) -> tensor<?x?xcomplex<f32>> {
  %0 = stablehlo.custom_call @lapack_cungqr_ffi(%a, %tau) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>]}
    : (tensor<?x?xcomplex<f32>, [@m, @n]>, tensor<?xcomplex<f32>, [@k]>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// The orthogonal matrix of more reflections than columns.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: n >= n + 1 must hold and never does
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %tau: tensor<?xf32, [@"n + 1"]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_sorgqr_ffi(%a, %tau) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>]}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A product with the orthogonal matrix from the left: its order is the number of rows, and its columns are the reflections.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@i, @j]>, %{{.*}}: tensor<?xf32, [@j]>, %{{.*}}: tensor<?x?xf32, [@i, @n]>) -> tensor<?x?xf32, [@i, @n]>
func.func @main(%a: tensor<?x?xf32, [@m, @k]>, %tau: tensor<?xf32, [@j]>, %c: tensor<?x?xf32, [@i, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_sormqr_ffi(%a, %tau, %c) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {left = true, transpose = false}}
    : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@j]>, tensor<?x?xf32, [@i, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A product with the unitary matrix from the left.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xcomplex<f32>, [@i, @j]>, %{{.*}}: tensor<?xcomplex<f32>, [@j]>, %{{.*}}: tensor<?x?xcomplex<f32>, [@i, @n]>) -> tensor<?x?xcomplex<f32>, [@i, @n]>
func.func @main(%a: tensor<?x?xcomplex<f32>, [@m, @k]>, %tau: tensor<?xcomplex<f32>, [@j]>, %c: tensor<?x?xcomplex<f32>, [@i, @n]>) -> tensor<?x?xcomplex<f32>> {
  %0 = stablehlo.custom_call @lapack_cunmqr_ffi(%a, %tau, %c) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {left = true, transpose = false}}
    : (tensor<?x?xcomplex<f32>, [@m, @k]>, tensor<?xcomplex<f32>, [@j]>, tensor<?x?xcomplex<f32>, [@i, @n]>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// From the right, its order is the number of columns, and no less than that of the reflections.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.custom_call at line {{[0-9]+}}", relation = "n >= j"}
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@n, @j]>, %{{.*}}: tensor<?xf32, [@j]>, %{{.*}}: tensor<?x?xf32, [@i, @n]>) ->
func.func @main(%a: tensor<?x?xf32, [@p, @j]>, %tau: tensor<?xf32, [@j]>, %c: tensor<?x?xf32, [@i, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_sormqr_ffi(%a, %tau, %c) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {left = false, transpose = true}}
    : (tensor<?x?xf32, [@p, @j]>, tensor<?xf32, [@j]>, tensor<?x?xf32, [@i, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A product with an orthogonal matrix that never has as many columns as there are reflections.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes k and k + 1 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@m, @k]>, %tau: tensor<?xf32, [@"k + 1"]>, %c: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_sormqr_ffi(%a, %tau, %c) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {left = true, transpose = false}}
    : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@"k + 1"]>, tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A Cholesky factor, and whether there is one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "p"
// CHECK: stablehlo.custom_call @lapack_spotrf_ffi({{.*}} -> (tensor<?x?xf32, [@n, @n]>, tensor<i32>)
func.func @main(%a: tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xf32, [@n, @p]>) -> (tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<i32>
}

// -----

// A Cholesky factor that is stated to be another size than the matrix.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes 2*n and 3 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@"2*n", @"2*n"]>) -> (tensor<3x3xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xf32, [@"2*n", @"2*n"]>) -> (tensor<3x3xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<3x3xf32>, tensor<i32>
}

// -----

// A triangular system from the left: the square matrix has the size of the right side's rows. (side L)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@j, @j]>, %{{.*}}: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32, [@j, @k]>
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %b: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8}}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// From the right, the size of its columns. (side R)
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@k, @k]>, %{{.*}}: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32, [@j, @k]>
func.func @main(%a: tensor<?x?xf32, [@m, @n]>, %b: tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {side = 82 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8}}
    : (tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@j, @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A triangular system of another number of equations than the right side has rows.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%a: tensor<?x?xf32, [@n, @n]>, %b: tensor<?x?xf32, [@"n + 1", @k]>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.backend_config = {side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8}}
    : (tensor<?x?xf32, [@n, @n]>, tensor<?x?xf32, [@"n + 1", @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Batches of the operands are the same.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@[[B:[a-z]]], @n, @n]>, %{{.*}}: tensor<?x?x?xf32, [@[[B]], @n, @k]>) -> tensor<?x?x?xf32, [@[[B]], @n, @k]>
func.func @main(%a: tensor<?x?x?xf32, [@b, @n, @n]>, %b: tensor<?x?x?xf32, [@c, @n, @k]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {
    operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>],
    result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], mhlo.backend_config = {side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8}}
    : (tensor<?x?x?xf32, [@b, @n, @n]>, tensor<?x?x?xf32, [@c, @n, @k]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Matrices that are laid out row by row are not LAPACK's.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: @lapack_spotrf_ffi {{.*}}: LAPACK needs matrices that are laid out column by column
func.func @main(%a: tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {
    operand_layouts = [dense<[1, 0]> : tensor<2xindex>],
    result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xf32, [@n, @n]>) -> (tensor<?x?xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<i32>
}

// -----

// A call of an unknown function is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @nobody {{.*}}: this custom call has no lowering
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.custom_call @nobody(%x) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
