// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Two numbers are equal where both parts are, and not where one is not.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xi1, [@n]>, tensor<?xi1, [@n]>) {
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[B]], %[[D]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE]], %[[COMPARE2]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare NE, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE4:\w+]] = stablehlo.compare NE, %[[B]], %[[D]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[COMPARE3]], %[[COMPARE4]] : tensor<?xi1, [@n]>
// CHECK-NEXT: return %[[AND]], %[[OR]] : tensor<?xi1, [@n]>, tensor<?xi1, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xi1>, tensor<?xi1>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.compare EQ, %x, %y : (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) -> tensor<?xi1>
  %1 = stablehlo.compare NE, %x, %y : (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) -> tensor<?xi1>
  return %0, %1 : tensor<?xi1>, tensor<?xi1>
}

// -----

// Order is that of the real parts, and of the imaginary ones where those are equal.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]> {
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare LE, %[[B]], %[[D]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE2]], %[[COMPARE3]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[COMPARE]], %[[AND]] : tensor<?xi1, [@n]>
// CHECK-NEXT: return %[[OR]] : tensor<?xi1, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> tensor<?xi1> {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.compare LE, %x, %y : (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) -> tensor<?xi1>
  return %0 : tensor<?xi1>
}

// -----

// A clamp between scalars is two choices in that order.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<3.000000e+00> : tensor<f32>
// CHECK-DAG: %[[CONSTANT3:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[CONSTANT4:\w+]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT3]], %{{\w+}}, dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT4]], %{{\w+}}, dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %{{\w+}}, dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %{{\w+}}, dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[BROADCAST]], %[[A]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[BROADCAST]], %[[A]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare GE, %[[BROADCAST2]], %[[B]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE2]], %[[COMPARE3]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[COMPARE]], %[[AND]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[OR]], %[[BROADCAST]], %[[A]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[OR]], %[[BROADCAST2]], %[[B]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE4:\w+]] = stablehlo.compare LT, %[[SELECT]], %[[BROADCAST3]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE5:\w+]] = stablehlo.compare EQ, %[[SELECT]], %[[BROADCAST3]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE6:\w+]] = stablehlo.compare LE, %[[SELECT2]], %[[BROADCAST4]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND2:\w+]] = stablehlo.and %[[COMPARE5]], %[[COMPARE6]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR2:\w+]] = stablehlo.or %[[COMPARE4]], %[[AND2]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT3:\w+]] = stablehlo.select %[[OR2]], %[[SELECT]], %[[BROADCAST3]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT4:\w+]] = stablehlo.select %[[OR2]], %[[SELECT2]], %[[BROADCAST4]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT3]], %[[SELECT4]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %lo = stablehlo.constant dense<(0.0, 1.0)> : tensor<complex<f32>>
  %hi = stablehlo.constant dense<(2.0, 3.0)> : tensor<complex<f32>>
  %0 = stablehlo.clamp %lo, %x, %hi
      : (tensor<complex<f32>>, tensor<?xcomplex<f32>>, tensor<complex<f32>>) -> tensor<?xcomplex<f32>>
  %re = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %im = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %re, %im : tensor<?xf32>, tensor<?xf32>
}

// -----

// A constant is two constants.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: ) -> (tensor<2xf64>, tensor<2xf64>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<[1.000000e+00, 3.000000e+00]> : tensor<2xf64>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<[2.000000e+00, -4.000000e+00]> : tensor<2xf64>
// CHECK-NOT: complex<
// CHECK: return %[[CONSTANT]], %[[CONSTANT2]] : tensor<2xf64>, tensor<2xf64>
func.func @main() -> (tensor<2xf64>, tensor<2xf64>) {
  %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  %2 = stablehlo.imag %0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  return %1, %2 : tensor<2xf64>, tensor<2xf64>
}

// -----

// A real tensor is its own real part, and its imaginary one is zero.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.real %
// CHECK-NOT: stablehlo.imag
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[A]], %[[BROADCAST]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = stablehlo.real %x : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  %1 = stablehlo.imag %x : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// Converted from reals, the imaginary part is zero.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f64>
// CHECK-NOT: complex<
// CHECK: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xf32, [@n]>) -> tensor<?xf64, [@n]>
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64, [@n]>
// CHECK-NEXT: return %[[CONVERT]], %[[BROADCAST]] : tensor<?xf64, [@n]>, tensor<?xf64, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf64>, tensor<?xf64>) {
  %0 = stablehlo.convert %x : (tensor<?xf32, [@n]>) -> tensor<?xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  return %1, %2 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Converted between widths, each part is.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xf32, [@n]>) -> tensor<?xf64, [@n]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?xf32, [@n]>) -> tensor<?xf64, [@n]>
// CHECK-NEXT: return %[[CONVERT]], %[[CONVERT2]] : tensor<?xf64, [@n]>, tensor<?xf64, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>) -> (tensor<?xf64>, tensor<?xf64>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.convert %x : (tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  return %1, %2 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Converted to reals, the real part is left.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %{{\w+}}: tensor<?xf32, [@n]>) -> tensor<?xf64, [@n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?xf32, [@n]>) -> tensor<?xf64, [@n]>
// CHECK-NEXT: return %[[CONVERT]] : tensor<?xf64, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>) -> tensor<?xf64> {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.convert %x : (tensor<?xcomplex<f32>>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// What only moves elements moves each part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@n, @m]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf32, [@n, @m]>) -> (tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>) {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<?x?xf32, [@n, @m]>)
// CHECK-SAME: -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<?x?xf32, [@n, @m]>)
// CHECK-SAME: -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[TRANSPOSE]], %[[TRANSPOSE2]] : tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x?xf32, [@n, @m]>, %b: tensor<?x?xf32, [@n, @m]>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?x?xf32, [@n, @m]>, tensor<?x?xf32, [@n, @m]>) -> tensor<?x?xcomplex<f32>>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  %2 = stablehlo.imag %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A count has no imaginary part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi32>
// CHECK-NEXT: %[[IOTA:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 0 : (tensor<1xi32>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[IOTA]], %[[BROADCAST]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@n]>) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xcomplex<f32>>
  %re = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %im = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %re, %im : tensor<?xf32>, tensor<?xf32>
}

// -----

// A reduction is one of two tensors, and its body has twice the arguments.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<f32>, tensor<f32>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[REDUCE:\w+]]:2 = stablehlo.reduce(%[[A]] init: %[[CONSTANT]])
// CHECK-SAME: , (%[[B]] init: %[[CONSTANT]]) across dimensions = [0]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
// CHECK-NEXT: reducer(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>) (%[[E3:\w+]]: tensor<f32>,
// CHECK-SAME: %[[E4:\w+]]: tensor<f32>)  {
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[E]], %[[E2]] : tensor<f32>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %[[E3]], %[[E4]] : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[ADD]], %[[ADD2]] : tensor<f32>, tensor<f32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[REDUCE]]#0, %[[REDUCE]]#1 : tensor<f32>, tensor<f32>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>) -> (tensor<f32>, tensor<f32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  %1 = stablehlo.real %0 : (tensor<complex<f32>>) -> tensor<f32>
  %2 = stablehlo.imag %0 : (tensor<complex<f32>>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}

// -----

// In a sort, the two arguments of each part stay neighbours.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xi32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xi32, [@n]>) {
// CHECK-NEXT: %[[SORT:\w+]]:3 = "stablehlo.sort"(%[[A]], %[[B]], %[[C]]) <{dimension = 0 : i64}> ({
// CHECK-NEXT: bb0(%{{\w+}}: tensor<f32>, %{{\w+}}: tensor<f32>, %[[E:\w+]]: tensor<f32>,
// CHECK-SAME: %[[E2:\w+]]: tensor<f32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<?xi32, [@n]>)
// CHECK-SAME: -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>, tensor<?xi32, [@n]>)
// CHECK-NEXT: return %[[SORT]]#0, %[[SORT]]#2 : tensor<?xf32, [@n]>, tensor<?xi32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %k: tensor<?xi32, [@n]>)
    -> (tensor<?xf32>, tensor<?xi32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0:2 = "stablehlo.sort"(%x, %k) <{dimension = 0 : i64}> ({
  ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>, %r: tensor<i32>, %s: tensor<i32>):
    %1 = stablehlo.imag %p : (tensor<complex<f32>>) -> tensor<f32>
    %2 = stablehlo.imag %q : (tensor<complex<f32>>) -> tensor<f32>
    %3 = stablehlo.compare LT, %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<?xcomplex<f32>>, tensor<?xi32, [@n]>) -> (tensor<?xcomplex<f32>>, tensor<?xi32>)
  %4 = stablehlo.real %0#0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %4, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// A bitcast is one of the interleaved values.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x2xf64, [@n, 2]>) -> tensor<?x2x2xf32, [@n, 2, 2]> {
// CHECK-NOT: complex<
// CHECK: %[[CONCATENATE:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 1
// CHECK-SAME: : (tensor<?x1xf64, [@n, 1]>, tensor<?x1xf64, [@n, 1]>) -> tensor<?x2xf64, [@n, 2]>
// CHECK-NEXT: stablehlo.bitcast_convert %[[CONCATENATE]] : (tensor<?x2xf64, [@n, 2]>) -> tensor<?x2xui64, [@n, 2]>
// CHECK-NOT: complex<
// CHECK: %[[CONVERT:\w+]] = stablehlo.convert %{{\w+}} : (tensor<?x2x2xui64, [@n, 2, 2]>)
// CHECK-SAME: -> tensor<?x2x2xui32, [@n, 2, 2]>
// CHECK-NEXT: stablehlo.bitcast_convert %[[CONVERT]] : (tensor<?x2x2xui32, [@n, 2, 2]>)
// CHECK-SAME: -> tensor<?x2x2xf32, [@n, 2, 2]>
// CHECK-NOT: complex<
// CHECK: %[[CONCATENATE2:\w+]] = stablehlo.concatenate %{{\w+}}, %{{\w+}}, dim = 2
// CHECK-SAME: : (tensor<?x2x1xf32, [@n, 2, 1]>, tensor<?x2x1xf32, [@n, 2, 1]>) -> tensor<?x2x2xf32, [@n, 2, 2]>
// CHECK-NEXT: return %[[CONCATENATE2]] : tensor<?x2x2xf32, [@n, 2, 2]>
func.func @main(%x: tensor<?xcomplex<f64>, [@n]>) -> tensor<?x2xcomplex<f32>> {
  %0 = stablehlo.bitcast_convert %x : (tensor<?xcomplex<f64>, [@n]>) -> tensor<?x2xcomplex<f32>>
  return %0 : tensor<?x2xcomplex<f32>>
}

// -----

// A size is that of either part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?x2xf32, [@n, 2]>) -> tensor<i32> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<i32>
// CHECK-NEXT: return %[[SHAPE]] : tensor<i32>
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xcomplex<f32>, [@n]>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

// A choice of reals has nothing to split.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xi1, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[A]], %[[B]], %[[C]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]] : tensor<?xf32, [@n]>
func.func @main(%p: tensor<?xi1, [@n]>, %x: tensor<?xf32, [@n]>, %y: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.select %p, %x, %y : (tensor<?xi1, [@n]>, tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
