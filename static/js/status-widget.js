// Shows a status page's widget on another site, after the script tag:
//   <script src="https://status.example.com/widget.js" async></script>
// With data-float it stays in the corner of the window. The script reads and sends nothing.
(() => {
  const script = document.currentScript;
  if (!script) return;
  const frame = document.createElement('iframe');
  frame.src = new URL('widget', script.src).href;
  frame.title = script.dataset.title || 'Service status';
  Object.assign(frame.style, { border: '0', width: '20rem', maxWidth: '100%', height: '4rem' });
  if (!('float' in script.dataset)) {
    script.after(frame);
    return;
  }
  Object.assign(frame.style, {
    position: 'fixed',
    right: '1rem',
    bottom: '1rem',
    maxWidth: 'calc(100vw - 2rem)',
    zIndex: '2147483000',
  });
  const show = () => document.body.append(frame);
  if (document.body) show();
  else document.addEventListener('DOMContentLoaded', show, { once: true });
})();
