// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A sum is one of each part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[A]], %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %[[B]], %[[D]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[ADD]], %[[ADD2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.add %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A difference is one of each part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[A]], %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SUBTRACT2:\w+]] = stablehlo.subtract %[[B]], %[[D]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[SUBTRACT2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.subtract %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A product is four products.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[A]], %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[B]], %[[D]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[MULTIPLY]], %[[MULTIPLY2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[A]], %[[D]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[B]], %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[MULTIPLY3]], %[[MULTIPLY4]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[ADD]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.multiply %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A quotient divides by the larger part first; then come the quotients by zero and by infinities.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf32, [@n]>, %{{\w+}}: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ABS2:\w+]] = stablehlo.abs %[[D]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[ABS]], %[[ABS2]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[D]], %[[C]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[SELECT]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[COMPARE]], %[[C]], %[[D]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[SELECT2]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[MULTIPLY2]], %[[MULTIPLY]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[MULTIPLY2]], %[[DIVIDE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[MULTIPLY]], %[[MULTIPLY3]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %[[ADD]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %[[ADD]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.bitcast_convert %[[C]] : (tensor<?xf32, [@n]>) -> tensor<?xi32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.compare EQ, %[[C]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: stablehlo.compare EQ, %[[D]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[SELECT3:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.select %{{\w+}}, %{{\w+}}, %[[SELECT3]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.divide %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A negation is one of each part.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE2:\w+]] = stablehlo.negate %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[NEGATE]], %[[NEGATE2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.negate %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A magnitude is the larger part, times a root of the ratio of the parts.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ABS2:\w+]] = stablehlo.abs %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MINIMUM:\w+]] = stablehlo.minimum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[MAXIMUM]], %[[MINIMUM]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[MINIMUM]], %[[MAXIMUM]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[BROADCAST]], %[[DIVIDE]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[SELECT]], %[[SELECT]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[MULTIPLY]], %[[BROADCAST]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SQRT:\w+]] = stablehlo.sqrt %[[ADD]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[MAXIMUM]], %[[SQRT]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[MULTIPLY2]] : tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.abs %z : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A sign is the number over its magnitude, and zero stays.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[SQRT:\w+]] = stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %[[SQRT]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[MULTIPLY]], %{{\w+}}
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[A]], %[[MULTIPLY]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[A]], %[[DIVIDE]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[DIVIDE2:\w+]] = stablehlo.divide %[[B]], %[[MULTIPLY]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[COMPARE]], %[[B]], %[[DIVIDE2]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]], %[[SELECT2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.sign %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// The larger of two is so by its real part, or by the imaginary one where those are equal.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare GE, %[[B]], %[[D]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE2]], %[[COMPARE3]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[COMPARE]], %[[AND]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[OR]], %[[A]], %[[C]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[OR]], %[[B]], %[[D]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]], %[[SELECT2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.maximum %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// The smaller likewise.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[A]], %[[C]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COMPARE3:\w+]] = stablehlo.compare LE, %[[B]], %[[D]] : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE2]], %[[COMPARE3]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[OR:\w+]] = stablehlo.or %[[COMPARE]], %[[AND]] : tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[OR]], %[[A]], %[[C]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[OR]], %[[B]], %[[D]] : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]], %[[SELECT2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.minimum %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// An exponential is two factors of half the exponent where one would overflow, and is real on the real axis.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<0x7F800000> : tensor<f32>
// CHECK-DAG: %[[CONSTANT3:\w+]] = stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT3]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[A]], %[[BROADCAST]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[EXPONENTIAL:\w+]] = stablehlo.exponential %[[MULTIPLY]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[EXPONENTIAL2:\w+]] = stablehlo.exponential %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[EXPONENTIAL2]], %[[BROADCAST2]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[COSINE:\w+]] = stablehlo.cosine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SINE:\w+]] = stablehlo.sine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[EXPONENTIAL]], %[[COSINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[MULTIPLY2]], %[[EXPONENTIAL]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[EXPONENTIAL2]], %[[COSINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[MULTIPLY3]], %[[MULTIPLY4]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY5:\w+]] = stablehlo.multiply %[[EXPONENTIAL]], %[[SINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY6:\w+]] = stablehlo.multiply %[[MULTIPLY5]], %[[EXPONENTIAL]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY7:\w+]] = stablehlo.multiply %[[EXPONENTIAL2]], %[[SINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[COMPARE]], %[[MULTIPLY6]], %[[MULTIPLY7]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COMPARE2:\w+]] = stablehlo.compare EQ, %[[B]], %[[BROADCAST3]]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT3:\w+]] = stablehlo.select %[[COMPARE2]], %[[B]], %[[SELECT2]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]], %[[SELECT3]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.exponential %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// An exponential less one takes the cosine's distance from one off.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[SINE:\w+]] = stablehlo.sine %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[EXPONENTIAL_MINUS_ONE:\w+]] = stablehlo.exponential_minus_one %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COSINE:\w+]] = stablehlo.cosine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[EXPONENTIAL_MINUS_ONE]], %[[COSINE]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[SINE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[MULTIPLY2]], %[[SINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[MULTIPLY]], %[[MULTIPLY3]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[EXPONENTIAL:\w+]] = stablehlo.exponential %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SINE2:\w+]] = stablehlo.sine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[EXPONENTIAL]], %[[SINE2]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[B]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[B]], %[[MULTIPLY4]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[SELECT]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.exponential_minus_one %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A logarithm is that of the magnitude, near one by `log_plus_one`, and the angle.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ABS2:\w+]] = stablehlo.abs %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.minimum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log %[[MAXIMUM]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[MAXIMUM]], %{{\w+}}
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE2:\w+]] = stablehlo.compare LT, %[[MAXIMUM]], %{{\w+}}
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[AND:\w+]] = stablehlo.and %[[COMPARE]], %[[COMPARE2]] : tensor<?xi1, [@n]>
// CHECK-NEXT: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[SELECT:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[AND]], %{{\w+}}, %[[SELECT]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ATAN2:\w+]] = stablehlo.atan2 %[[B]], %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT2]], %[[ATAN2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.log %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A logarithm of one more has the angle of one more.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[ADD:\w+]] = stablehlo.add %[[A]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[SELECT:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %[[SELECT]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ATAN2:\w+]] = stablehlo.atan2 %[[B]], %[[ADD]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT2]], %[[ATAN2]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.log_plus_one %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A logistic function is one over an exponential and one.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[NEGATE:\w+]] = stablehlo.negate %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE2:\w+]] = stablehlo.negate %[[B]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.exponential %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential %[[NEGATE]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.cosine %[[NEGATE2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.sine %[[NEGATE2]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.add %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.compare LT, %{{\w+}}, %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.logistic %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A power is one of the magnitude, turned by the angle.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[SQRT:\w+]] = stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %[[SQRT]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ATAN2:\w+]] = stablehlo.atan2 %[[B]], %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[POWER:\w+]] = stablehlo.power %[[MULTIPLY]], %[[C]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[D]], %[[ATAN2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[MULTIPLY2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[EXPONENTIAL:\w+]] = stablehlo.exponential %[[NEGATE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.multiply %[[POWER]], %[[EXPONENTIAL]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.cosine %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sine %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[SELECT:\w+]] = stablehlo.select %{{\w+}}, %[[POWER]], %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %{{\w+}}, %{{\w+}}, %[[SELECT]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %[[SELECT2]], %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.power %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A root takes three of reals, and the sign of the imaginary part from its bits.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ABS2:\w+]] = stablehlo.abs %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MAXIMUM:\w+]] = stablehlo.maximum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.minimum %[[ABS]], %[[ABS2]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %[[MAXIMUM]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %[[ABS2]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[A]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %{{\w+}}, %{{\w+}}
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT2:\w+]] = stablehlo.select %[[COMPARE]], %{{\w+}}, %{{\w+}}
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[B]] : (tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE2:\w+]] = stablehlo.compare LT, %[[BITCAST_CONVERT]], %{{\w+}}
// CHECK-SAME: : (tensor<?xi32, [@n]>, tensor<?xi32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[SELECT2]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT3:\w+]] = stablehlo.select %[[COMPARE2]], %[[NEGATE]], %[[SELECT2]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SELECT]], %[[SELECT3]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.sqrt %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// The bits of doubles are 64.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf64, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf64, [@n]>) -> (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[BITCAST_CONVERT:\w+]] = stablehlo.bitcast_convert %[[B]] : (tensor<?xf64, [@n]>) -> tensor<?xi64, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[BITCAST_CONVERT]], %{{\w+}}
// CHECK-SAME: : (tensor<?xi64, [@n]>, tensor<?xi64, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %{{\w+}} : tensor<?xf64, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[NEGATE]], %{{\w+}}
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf64, [@n]>
// CHECK-NEXT: return %{{\w+}}, %[[SELECT]] : tensor<?xf64, [@n]>, tensor<?xf64, [@n]>
func.func @main(%re: tensor<?xf64, [@n]>, %im: tensor<?xf64, [@n]>) -> (tensor<?xf64>, tensor<?xf64>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) -> tensor<?xcomplex<f64>>
  %0 = stablehlo.sqrt %z : tensor<?xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  return %1, %2 : tensor<?xf64>, tensor<?xf64>
}

// -----

// A reciprocal root is one over the root.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.bitcast_convert %[[B]] : (tensor<?xf32, [@n]>) -> tensor<?xi32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.rsqrt %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A cubic root is that of the magnitude, at a third of the angle.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[SQRT:\w+]] = stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %[[SQRT]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[CBRT:\w+]] = stablehlo.cbrt %[[MULTIPLY]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ATAN2:\w+]] = stablehlo.atan2 %[[B]], %[[A]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[DIVIDE:\w+]] = stablehlo.divide %[[ATAN2]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[COSINE:\w+]] = stablehlo.cosine %[[DIVIDE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[CBRT]], %[[COSINE]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[DIVIDE]], %{{\w+}}
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SINE:\w+]] = stablehlo.sine %[[DIVIDE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[CBRT]], %[[SINE]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[DIVIDE]], %[[MULTIPLY3]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[MULTIPLY2]], %[[SELECT]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.cbrt %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A sine by the sine and cosine of one part, and the hyperbolic ones of the other.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: stablehlo.constant dense<2.000000e+01> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential_minus_one %[[ABS]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential %[[ABS]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.compare GT, %[[ABS]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.exponential %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COSINE:\w+]] = stablehlo.cosine %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[COSINE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[MULTIPLY]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SINE:\w+]] = stablehlo.sine %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[SINE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[MULTIPLY3]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COMPARE:\w+]] = stablehlo.compare EQ, %[[B]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>)
// CHECK-SAME: -> tensor<?xi1, [@n]>
// CHECK-NEXT: %[[SELECT:\w+]] = stablehlo.select %[[COMPARE]], %[[B]], %[[MULTIPLY2]]
// CHECK-SAME: : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[MULTIPLY4]], %[[SELECT]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.sine %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A cosine likewise, its imaginary part negated.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: %[[ABS:\w+]] = stablehlo.abs %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential_minus_one %[[ABS]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential %[[ABS]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[COSINE:\w+]] = stablehlo.cosine %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[COSINE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[MULTIPLY]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SINE:\w+]] = stablehlo.sine %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[SINE]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[MULTIPLY3]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %[[MULTIPLY4]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[MULTIPLY2]], %[[NEGATE]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.cosine %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A hyperbolic tangent by a tangent, and by its limit from 11 on in single precision.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-DAG: stablehlo.constant dense<1.100000e+01> : tensor<f32>
// CHECK-NOT: complex<
// CHECK: %[[TAN:\w+]] = stablehlo.tan %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ABS:\w+]] = stablehlo.abs %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.exponential_minus_one %[[ABS]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.divide %[[TAN]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.compare GT, %[[ABS]], %{{\w+}} : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NEXT: stablehlo.sine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.cosine %[[B]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.exponential %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.select %{{\w+}}, %{{\w+}}, %{{\w+}} : tensor<?xi1, [@n]>, tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.tanh %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// From 22 on in double precision.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf64, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf64, [@n]>) -> (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) {
// CHECK-DAG: stablehlo.constant dense<2.200000e+01> : tensor<f64>
// CHECK-NOT: complex<
// CHECK: stablehlo.tan %[[B]] : tensor<?xf64, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.compare GT, %{{\w+}}, %{{\w+}} : (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) -> tensor<?xi1, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sine %[[B]] : tensor<?xf64, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf64, [@n]>, tensor<?xf64, [@n]>
func.func @main(%re: tensor<?xf64, [@n]>, %im: tensor<?xf64, [@n]>) -> (tensor<?xf64>, tensor<?xf64>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf64, [@n]>, tensor<?xf64, [@n]>) -> tensor<?xcomplex<f64>>
  %0 = stablehlo.tanh %z : tensor<?xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  return %1, %2 : tensor<?xf64>, tensor<?xf64>
}

// -----

// A tangent is a hyperbolic one of the number turned.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: stablehlo.negate %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[TAN:\w+]] = stablehlo.tan %[[A]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.exponential_minus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.divide %[[TAN]], %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.negate %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%re: tensor<?xf32, [@n]>, %im: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.complex %re, %im : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.tan %z : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// The angle of two complex numbers is a logarithm of a quotient.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>, %[[B:\w+]]: tensor<?xf32, [@n]>, %[[C:\w+]]: tensor<?xf32, [@n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?xf32, [@n]>) -> (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) {
// CHECK-NOT: complex<
// CHECK: stablehlo.subtract %[[C]], %[[B]] : tensor<?xf32, [@n]>
// CHECK-NEXT: stablehlo.add %[[D]], %[[A]] : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.sqrt %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.divide %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: stablehlo.log_plus_one %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NOT: complex<
// CHECK: %[[ATAN2:\w+]] = stablehlo.atan2 %{{\w+}}, %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[NEGATE:\w+]] = stablehlo.negate %{{\w+}} : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[ATAN2]], %[[NEGATE]] : tensor<?xf32, [@n]>, tensor<?xf32, [@n]>
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>, %c: tensor<?xf32, [@n]>,
    %d: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %0 = stablehlo.atan2 %x, %y : tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.imag %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// Functions of reals stay.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[TANH:\w+]] = stablehlo.tanh %[[A]] : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[SQRT:\w+]] = stablehlo.sqrt %[[TANH]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[SQRT]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = stablehlo.tanh %x : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  %1 = stablehlo.sqrt %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Some functions of reals are none of complex numbers.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.remainder on complex<f32> at line {{[0-9]+}}: this dtype has no lowering; convert to a supported dtype first
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>> {
  %0 = stablehlo.remainder %x, %x
      : (tensor<?xcomplex<f32>, [@n]>, tensor<?xcomplex<f32>, [@n]>) -> tensor<?xcomplex<f32>>
  return %0 : tensor<?xcomplex<f32>>
}
